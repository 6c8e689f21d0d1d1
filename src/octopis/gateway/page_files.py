"""How the dashboard's files are served: looked at anew each time, and never in another's frame."""

from typing import Any

from starlette.responses import Response
from starlette.staticfiles import StaticFiles

HEADERS = {
    "cache-control": "no-cache",  # after an update no page is made of old and new files
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class PageFiles(StaticFiles):
    """The files beside the page."""

    def file_response(self, *arguments: Any, **named: Any) -> Response:
        """Answer with a file, or that it has not changed."""
        response = super().file_response(*arguments, **named)
        response.headers.update(HEADERS)
        return response
