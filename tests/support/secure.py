"""Live brokers with security, in tests: a folder with certificates, users and tokens, and who uses them."""

import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octopis.broker.broker import LiveBroker
from octopis.broker.settings import OverlayConfiguration, SecurityOptions
from octopis.client.client import Client
from octopis.client.credentials import Credentials
from octopis.core.topology import SCOT
from octopis.overlay.deployment import running
from octopis.security.certificates import (
    Authority,
    issue_broker,
    issue_client,
    make_authority,
)
from octopis.security.folder import SecurityFolder
from octopis.security.making import make_folder
from octopis.security.passwords import make_password
from octopis.security.tokens import issue_token
from support.live import Brokers, overlay
