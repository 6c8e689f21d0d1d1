from pathlib import Path

import pytest

FIGURE_7 = '[topology]\ncatalogue = "figure-7"\n'


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "overlay.toml"
    path.write_text(FIGURE_7, encoding="utf-8")
    return path


def test_neighbour_without_a_port_is_an_error_that_says_what_to_write(octopis, config: Path):
    status, _, said = octopis("broker", "run", "--config", str(config), "--broker", "b,2")
    assert status == 2
    assert "does not say where B(a, 2), a neighbour of B(b, 2), listens" in said
    assert 'give [brokers."a,2"] a port' in said


def test_unknown_broker_is_named(octopis, config: Path):
    status, _, said = octopis("broker", "run", "--config", str(config), "--broker", "x,1")
    assert (status, "the broker 'x,1' names 'x'" in said) == (2, True)


def test_file_that_is_not_there_is_named(octopis):
    status, _, said = octopis("broker", "run", "--config", "nothing.toml", "--broker", "a,0")
    assert (status, said) == (2, "octopis: cannot read nothing.toml: No such file or directory\n")
