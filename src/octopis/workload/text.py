"""A scenario's document as TOML text, with the source of every cost in a comment."""

from octopis.topology import NamedTopology, catalogue_names, format_topology, from_catalogue
from octopis.topology.toml_text import encode_text
from octopis.workload.costs import Profile, format_profile
from octopis.workload.scenario import CutLink, Heading, QueueOptions, RoutingOptions, SlowLink


def format_scenario(  # noqa: PLR0913 - the tables of one document
    heading: Heading,
    topology: NamedTopology,
    routing: RoutingOptions,
    *,
    profile: Profile,
    queues: QueueOptions,
    faults: tuple[SlowLink | CutLink, ...] = (),
) -> str:
    """Return the text of a `scenario.toml`."""
    lines = ["[scenario]", f"name = {encode_text(heading.name)}"]
    lines += [f"description = {encode_text(heading.description)}"] if heading.description else []
    lines += [f"seed = {heading.seed}", "", _topology(topology).rstrip(), ""]
    lines += [
        "[routing]",
        f'algorithm = "{routing.algorithm.value}"  # snr, dnr or bid',
        f"congestion_threshold = {routing.congestion_threshold!r}  # tau",
        f"window_ms = {routing.window_ms!r}  # t_w",
        "",
        "[queues]  # one output queue for each direction of each link",
        f"capacity_messages = {queues.capacity_messages}",
        f'policy = "{queues.policy}"  # at the bound: drop_newest, drop_oldest or stop',
        "",
        format_profile(profile).rstrip(),
    ]
    for fault in faults:
        lines += ["", "[[slow_links]]" if isinstance(fault, SlowLink) else "[[cut_links]]"]
        for name in fault.__struct_fields__:
            value = getattr(fault, name)
            lines.append(
                f"{name} = {encode_text(value) if isinstance(value, str) else repr(value)}"
            )
    return "\n".join(lines) + "\n"


def _topology(topology: NamedTopology) -> str:
    for name in catalogue_names():
        if from_catalogue(name).scot == topology.scot:
            return f'[topology]\ncatalogue = "{name}"\n'
    return format_topology(topology)
