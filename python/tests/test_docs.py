"""Every example of the docs runs, and every public object is documented."""

import doctest
import inspect
import re
import warnings

import pytest
from conftest import ROOT

import nysketch
import nysketch.cluster

THINGS = [getattr(nysketch, name) for name in nysketch.__all__]


def documented():
    """Yield public classes and functions with their public methods and properties."""
    for thing in THINGS:
        yield thing.__name__, thing
        if inspect.isclass(thing):
            for name, member in vars(thing).items():
                if not name.startswith("_"):
                    yield f"{thing.__name__}.{name}", member


def test_everything_public_has_a_docstring():
    assert [name for name, thing in documented() if not inspect.getdoc(thing)] == []


@pytest.mark.parametrize(
    ("name", "thing"), list(documented()), ids=lambda x: x if isinstance(x, str) else ""
)
def test_docstring_examples_run(name, thing):
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(thing) or "", {}, name, None, 0)
    failed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed
    assert failed == 0


def test_the_module_docstring_runs():
    assert doctest.testmod(nysketch).failed == 0
    assert doctest.testmod(nysketch.cluster).attempted > 5
    assert doctest.testmod(nysketch.cluster).failed == 0


def test_classes_document_every_parameter():
    for thing in THINGS:
        if inspect.isclass(thing) and hasattr(thing, "get_params"):
            for name in thing().get_params():
                assert f"\n{name} : " in inspect.getdoc(thing), (thing, name)


def examples_of(name: str) -> int:
    """Run the examples of a page and return their number."""
    # Lines that start or end a code block are not output.
    text = re.sub(r"^```.*$", "", (ROOT / "docs" / name).read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=options).run(test)
    assert result.failed == 0
    return result.attempted


def test_the_page_on_spark_runs_with_dask():
    pytest.importorskip("dask")
    assert examples_of("SPARK.md") > 5


def test_the_tutorial_runs(tmp_path, monkeypatch):
    """Run docs/PYTHON.md in a temporary folder; it writes the pictures that are in docs/images."""
    pytest.importorskip("matplotlib").use("agg")
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert examples_of("PYTHON.md") > 50
    for picture in ("clusters.png", "k-curve.png"):
        assert (tmp_path / picture).stat().st_size > 5000
        assert (ROOT / "docs" / "images" / picture).exists()
