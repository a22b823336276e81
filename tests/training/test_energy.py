"""Watt-seconds are read where Linux tells them. This machine may not, so the folder of counters is made by hand."""

from pathlib import Path

from textcls_training.cli.energy import EnergyMeter


def counter(folder: Path, zone: str, name: str, microjoules: int, end: int = 1_000_000_000) -> None:
    (folder / zone).mkdir(exist_ok=True)
    for file, content in (("name", name), ("energy_uj", microjoules), ("max_energy_range_uj", end)):
        (folder / zone / file).write_text(f"{content}\n")


def test_it_adds_up_processors_and_counts_their_parts_and_the_whole_platform_once(tmp_path: Path) -> None:
    zones = [("intel-rapl:0", "package-0"), ("intel-rapl:0:0", "core"), ("intel-rapl:1", "package-1")]
    for zone, name in (*zones, ("intel-rapl:2", "psys")):
        counter(tmp_path, zone, name, 5_000_000)
    meter = EnergyMeter(tmp_path)
    for zone, name in (*zones, ("intel-rapl:2", "psys")):
        counter(tmp_path, zone, name, 6_500_000)
    assert meter.watt_seconds() == 3.0


def test_a_counter_that_has_begun_anew_is_read_on(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", "package-0", 9_000_000, end=9_999_999)
    meter = EnergyMeter(tmp_path)
    counter(tmp_path, "intel-rapl:0", "package-0", 1_000_000, end=9_999_999)
    assert meter.watt_seconds() == 2.0


def test_nothing_is_told_where_there_are_no_counters_or_they_go_away(tmp_path: Path) -> None:
    assert EnergyMeter(tmp_path / "none").watt_seconds() is None
    counter(tmp_path, "intel-rapl:0", "package-0", 1)
    meter = EnergyMeter(tmp_path)
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    assert meter.watt_seconds() is None
    assert EnergyMeter(tmp_path).watt_seconds() is None
