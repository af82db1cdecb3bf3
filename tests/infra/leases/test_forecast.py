"""The forecast of a night: whose price it takes, and what it doubts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from bench.cost.forecast import Forecast
from bench.cost.night_forecast import MachineForecast, night_forecast
from bench.errors import CloudDeniedError, LeaseError, SuiteError
from bench.record import NightRecord
from bench.suite.machine import Alternative, Machine
from bench.suite.pins import PinnedPrice
from catalog.engine_check import broken_by, refusals
from flows.show.plan import show_plan
from infra.clouds.cloud import Cloud, Offer
from infra.clouds.local import LocalCloud
from infra.leases.forecast import forecast, forecast_night
from infra.leases.listing import stored_items
from infra.ledger.volumes import RecordedVolume
from infra.loadgen.suite_file import make_night
from infra.settings import Settings
from tests.emulators.digitalocean import Emulator
from tests.emulators.virtual_clock import VirtualClock
from tests.infra.rented import Rig

SUITE = Path(__file__).parents[3] / "suites" / "llama-3.3-70b-mi300x.toml"
PINNED = (PinnedPrice(cloud="digitalocean", kind="gpu-mi300x1-192gb", usd_per_hour=2.40, as_of=date(2026, 11, 20)),)


@dataclass(frozen=True)
class Market:
    """A cloud that only tells its prices; whoever asks it for more gets an AttributeError."""

    usd_per_hour: float | None
    name: str = "digitalocean"

    def offers(self) -> list[Offer]:
        if self.usd_per_hour is None:
            raise LeaseError("the cloud could not be asked: no route; try again")
        kind = "gpu-mi300x1-192gb"
        taken = Offer(kind, 1.0, region="atl1", is_available=False)
        return [taken, Offer(kind, self.usd_per_hour, region="tor1"), Offer("gpu-h100x1-80gb", 4.41, region="tor1")]

    def regions(self) -> list[str]:
        return ["atl1", "tor1"]


def _night(**machine: object) -> NightRecord:
    night = make_night(SUITE, "digitalocean", poc=False, is_draft=True)
    asked = night.suite.machine.model_copy(update=machine)
    return night.model_copy(update={"suite": night.suite.model_copy(update={"machine": asked})})


WITHOUT = "no token for digitalocean: set NIGHTBENCH_DO_TOKEN (docs/how-to/rent-a-gpu.md lists the scopes it needs)"


def _forecast(night: NightRecord, usd_per_hour: float | None, pinned: Sequence[PinnedPrice] = ()) -> Forecast:
    market: Cloud = Market(usd_per_hour)  # type: ignore[assignment]  # a plan asks for nothing but offers
    return forecast(Settings(), night, market, pinned=pinned)


def test_the_price_is_the_clouds_own_where_it_can_be_asked() -> None:
    found = _forecast(_night(), 2.75)

    assert (found.price.usd_per_hour, found.doubts) == (2.75, ())
    assert found.price.source.startswith("digitalocean for gpu-mi300x1-192gb in tor1, ")
    assert found.cold.usd == pytest.approx(found.cold.billed_s / 3600 * 2.75)
    assert found.usd_max == pytest.approx(2.75 * 360 / 60)


def test_without_a_token_the_price_is_the_catalogues_and_says_its_day() -> None:
    found = forecast(Settings(), _night(), None)

    assert (found.price.usd_per_hour, found.price.source) == (2.59, "the catalogue, 2026-10-01")
    assert found.doubts == (f"the price may be out of date: {WITHOUT}",)


def test_without_scripts_the_command_cloud_names_its_own_remedy() -> None:
    found = forecast(Settings(), _night().model_copy(update={"target": "command"}), None)

    assert "no scripts for command: set NIGHTBENCH_COMMAND_CLOUD to their folder" in found.doubts[0]


def test_without_a_token_a_lock_has_the_price_before_the_catalogue() -> None:
    found = forecast(Settings(), _night(), None, pinned=PINNED)

    assert (found.price.usd_per_hour, found.price.source) == (2.40, "the suite's lock, 2026-11-20")
    assert found.doubts == (f"the price may be out of date: {WITHOUT}",)


def test_a_price_that_is_no_longer_the_locks_is_told() -> None:
    assert _forecast(_night(), 2.75, PINNED).doubts[0] == (
        "the price is no longer that of the suite's lock, 2.40 USD/h on 2026-11-20"
    )


def _suite_with(flags: str, folder: Path) -> Path:
    text = SUITE.read_text("utf-8").replace('"--dtype", "float16",', flags)
    text = text.replace("@main", f"@{'a' * 40}").replace(":v0.32.0", f"@sha256:{'b' * 64}")
    suite = folder / "suite.toml"
    suite.write_text(text, "utf-8")
    return suite


def test_a_suite_that_its_engine_would_not_serve_is_told_in_the_plan_and_refused_as_a_night(tmp_path: Path) -> None:
    suite = _suite_with('"--dtype", "float16", "-tp", "3",', tmp_path)

    doubts = forecast(Settings(), make_night(suite, "digitalocean", poc=False, is_draft=True), None).doubts
    assert [doubt for doubt in doubts if doubt.startswith("the night would be refused: 64 attention heads on 3 GPUs")]
    with pytest.raises(SuiteError, match=r"suite\.toml: the engine would fail: 64 attention heads on 3 GPUs: .* GPU"):
        make_night(suite, "digitalocean", poc=False)


@pytest.mark.parametrize(
    ("suite", "target"), [("local.toml", "local"), (SUITE.name, "digitalocean"), (SUITE.name, "local")]
)
def test_the_suites_that_come_with_it_break_nothing(suite: str, target: str) -> None:
    night = make_night(SUITE.with_name(suite), target, poc=False, is_draft=True)

    assert broken_by(night.suite, target) == ()


def test_a_suite_that_only_may_fail_is_told_and_not_refused(tmp_path: Path) -> None:
    suite = _suite_with('"--dtype", "float16",', tmp_path)
    night = make_night(suite, "digitalocean", poc=False)
    on_a_small_gpu = night.suite.model_copy(update={"machine": Machine(kind="own", gpu="MI210", gpu_count=1)})

    doubts = forecast(Settings(), night.model_copy(update={"suite": on_a_small_gpu}), None).doubts

    assert [doubt for doubt in doubts if doubt.startswith("FP8 on MI210: this GPU has no FP8 compute")]


def test_what_only_an_alternative_cannot_do_is_told_with_its_name() -> None:
    night = _night(kind="gpu-mi300x8-1536gb", gpu_count=8, alternatives=(Alternative(kind="gpu-h100x1-80gb"),))
    engine = night.suite.engine.model_copy(update={"flags": (*night.suite.engine.flags, "-tp", "8")})
    suite = night.suite.model_copy(update={"engine": engine})

    doubts = forecast(Settings(), night.model_copy(update={"suite": suite}), None).doubts

    about_ranks = [doubt for doubt in doubts if "ranks" in doubt]
    assert len(about_ranks) == 1
    assert about_ranks[0].startswith("the night would be refused: on gpu-h100x1-80gb: 8 ranks on 1 GPU: ")


@pytest.mark.parametrize(
    ("precision", "gpu_count", "flags", "why"),
    [
        ("fp8", 1, (), "the load does not fit the GPU memory: it needs 3"),
        ("bf16", 4, ("-tp", "4"), "the load does not fit the GPU memory: it needs 7"),
        ("bf16", 8, ("-tp", "8"), None),
        ("fp8", 4, ("-tp", "4"), None),
    ],
)
def test_405b_is_refused_where_its_gpus_cannot_hold_it(
    precision: str, gpu_count: int, flags: tuple[str, ...], why: str | None
) -> None:
    night = _night(kind="own", gpu="MI300X", gpu_count=gpu_count)
    model = night.suite.model.model_copy(
        update={"source": "hf:meta-llama/Llama-3.1-405B-Instruct", "precision": precision}
    )
    engine = night.suite.engine.model_copy(update={"flags": flags})
    suite = night.suite.model_copy(update={"model": model, "engine": engine})

    found = refusals(suite, night.runs, "ssh:ann@gpu1:22")

    assert [each[: len(why or "")] for each in found] == ([] if why is None else [why])


def test_a_cloud_that_cannot_be_asked_is_a_doubt_and_no_error() -> None:
    assert "no route" in _forecast(_night(), None).doubts[0]


@pytest.mark.parametrize(
    ("machine", "doubt"),
    [
        ({"usd_per_hour_max": 2.0}, "nothing would be rented"),
        ({"budget_usd": 5.0}, "would end the night early: the estimate is 12.46 USD"),
        ({"lease_minutes": 60}, "machine.lease_minutes = 60 would end the night early: the estimate is 289 minutes"),
    ],
)
def test_what_would_end_the_night_early_is_said_before(machine: dict[str, object], doubt: str) -> None:
    assert doubt in _forecast(_night(**machine), 2.59).doubts[0]


def _on_own_host(**changes: object) -> Forecast:
    night = make_night(SUITE, "ssh:ann@gpu1:22", poc=False, is_draft=True)
    return forecast(Settings(), night.model_copy(update={"suite": night.suite.model_copy(update=changes)}), None)


def test_a_host_of_ones_own_costs_nothing_boots_nothing_and_has_needs() -> None:
    found, rented = _on_own_host(), forecast(Settings(), _night(), None)

    assert (found.price.usd_per_hour, found.usd_max, found.prepare, found.doubts) == (0.0, 0.0, None, ())
    assert {stage.name for stage in rented.cold.stages} - {stage.name for stage in found.cold.stages} == {
        "boot",
        "release",
    }
    assert found.fit == rented.fit
    assert [need.what for need in found.needs] == ["GPUs", "docker", "disk", "network", "load client"]


def test_a_later_night_on_a_host_of_ones_own_fetches_nothing() -> None:
    found = _on_own_host()

    stages = {stage.name: stage for stage in found.warm.stages}
    assert (stages["software"].seconds, round(stages["model"].seconds)) == (0.0, 71)  # 141 GB read once, at 2 GB/s
    assert found.warm.billed_s < found.cold.billed_s


def test_what_only_a_cloud_has_is_a_doubt_on_a_host_of_ones_own() -> None:
    suite = _night().suite
    engine = suite.engine.model_copy(update={"image": None, "install": "venv"})

    doubts = _on_own_host(model=suite.model.model_copy(update={"cache_volume_gib": 200}), engine=engine).doubts

    assert ["model.cache_volume_gib applies to clouds only" in doubts[0], "served on the CPU" in doubts[1]] == [
        True,
        True,
    ]


def _keeping(volume_gib: int) -> NightRecord:
    night = _night()
    model = night.suite.model.model_copy(update={"cache_volume_gib": volume_gib})
    return night.model_copy(update={"suite": night.suite.model_copy(update={"model": model})})


def test_a_volume_for_the_model_has_its_price() -> None:
    assert _forecast(_night(), 2.59).volume_usd_per_month is None

    found = _forecast(_keeping(200), 2.59)

    assert found.volume_usd_per_month == pytest.approx(20.0)
    assert found.doubts == ()


def test_a_bucket_for_the_model_has_its_price_where_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTBENCH_S3_BUCKET", raising=False)
    night = _night()
    model = night.suite.model.model_copy(update={"cache_bucket_minutes": 30})
    night = night.model_copy(update={"suite": night.suite.model_copy(update={"model": model})})
    monkeypatch.setenv("NIGHTBENCH_S3_ENDPOINT", "https://nyc3.digitaloceanspaces.com")

    at_spaces = _forecast(night, 2.6)

    assert at_spaces.bucket_usd_per_month == pytest.approx(131.4 * 0.02, rel=0.01)
    assert at_spaces.fill_usd_max == pytest.approx(1.3)
    assert at_spaces.doubts[0].startswith("the night would be refused: model.cache_bucket_minutes needs a bucket")
    monkeypatch.setenv("NIGHTBENCH_S3_ENDPOINT", "https://elsewhere.example")
    assert _forecast(night, 2.6).bucket_usd_per_month is None


def test_a_plan_says_what_a_bucket_that_is_optional_would_save_and_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NIGHTBENCH_S3_BUCKET", raising=False)
    night = make_night(SUITE.with_name("nightly.toml"), "digitalocean", poc=False, is_draft=True)
    told = "the model from the hub, 141 GB: set NIGHTBENCH_S3_BUCKET to cache it, 2.63 USD per month at Spaces"

    (unset,) = forecast_night(Settings(), night, None).machines
    monkeypatch.setenv("NIGHTBENCH_S3_BUCKET", "ours")
    (set_,) = forecast_night(Settings(), night, None).machines

    assert [one.endswith(told) for one in unset.forecast.doubts].count(True) == 1
    assert not any("bucket" in one for one in set_.forecast.doubts)
    assert (unset.night.suite.model.cache_bucket_minutes, set_.night.suite.model.cache_bucket_minutes) == (None, 30)


def test_a_volume_that_the_weights_do_not_fit_is_a_doubt() -> None:
    (doubt,) = _forecast(_keeping(100), 2.59).doubts

    assert doubt.startswith("model.cache_volume_gib = 100 is too small: the weights need 131 GiB")


def test_a_kind_that_the_cloud_does_not_know_is_a_doubt_with_the_next_step() -> None:
    assert "change machine.kind or --target" in _forecast(_night(kind="gpu-mi999"), 2.59).doubts[0]


def test_a_machine_that_nobody_prices_has_no_costs() -> None:
    found = forecast(Settings(), _night(kind="gpu-l40sx1-48gb"), None)

    assert (found.price.usd_per_hour, found.usd_max, found.prepare) == (None, None, None)
    assert any("does not fit the GPU memory" in doubt for doubt in found.doubts)


def test_a_real_client_asks_the_emulated_cloud_for_its_price(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        emulator.sell("gpu-mi300x1-192gb", usd_per_hour=2.22)
        rig = Rig(emulator, clock, tmp_path)

        found = forecast(Settings(), _night(), rig.cloud)

        assert found.price.usd_per_hour == 2.22
        assert emulator.requests("POST") == []


def test_a_token_that_is_turned_away_is_an_error_with_the_next_step(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        rig = Rig(emulator, clock, tmp_path)

        with pytest.raises(CloudDeniedError, match="token"):
            forecast(Settings(), _night(), rig.cloud_with(token="dop_v1_" + "0" * 64))


def test_what_a_cloud_stores_is_priced_by_the_month(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        emulator.plant_snapshot("nb-golden-1", size_gb=50.0, foreign=False)
        emulator.plant_volume("nb-cache", size_gib=160, foreign=False)

        kept = stored_items({"digitalocean": Rig(emulator, clock, tmp_path).cloud})

        assert [round(one.usd_per_month or 0, 6) for one in kept] == [3.0, 16.0]


def test_a_volume_that_was_asked_for_and_that_no_cloud_shows_is_counted(tmp_path: Path) -> None:
    clock = VirtualClock(tmp_path / "clock")
    with Emulator(clock) as emulator:
        emulator.plant_volume("nb-vol-1-atl1-x1", size_gib=160, foreign=False)
        shown = RecordedVolume("digitalocean", "nb-vol-1-atl1-x1", 160, "made", "1", clock.now())
        lost = RecordedVolume("digitalocean", "nb-vol-2-atl1-x1", 50, "intended", None, clock.now())

        kept = stored_items({"digitalocean": Rig(emulator, clock, tmp_path).cloud}, [shown, lost])

    assert [(one.description.split()[-1], round(one.usd_per_month or 0, 6)) for one in kept] == [
        ("nb-vol-1-atl1-x1", 16.0),
        ("now", 5.0),
    ]
    assert "volume nb-vol-2-atl1-x1: requested, without a reply, at" in kept[1].description


def test_a_plan_names_a_secret_of_a_command_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    night = make_night(SUITE.with_name("amd-mi300x-training.toml"), "digitalocean", poc=False, is_draft=True)

    doubts = _forecast(night, 20.72).doubts

    said = "the night would be refused: HF_TOKEN (suite: command.secret_environment) is not set here"
    assert [doubt.startswith(said) for doubt in doubts].count(True) == 1  # nine commands need it


@pytest.mark.parametrize("target", ["digitalocean", "local", "ssh:ann@gpu.invalid:22"])
def test_a_plan_names_each_secret_of_the_engine_that_is_not_set(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("ENGINE_LICENSE_KEY", "set")
    night = _night()
    engine = night.suite.engine.model_copy(update={"secret_environment": ("ENGINE_LICENSE_KEY", "NOBODY_HAS_IT")})
    night = night.model_copy(update={"target": target, "suite": night.suite.model_copy(update={"engine": engine})})
    cloud = LocalCloud(tmp_path) if target == "local" else None

    found = forecast(Settings(), night, cloud)
    show_plan(night, night_forecast(night, [MachineForecast(night, found)], is_parallel=True), (), as_json=False)

    said = "the night would be refused: NOBODY_HAS_IT (suite: engine.secret_environment) is not set here"
    assert [said in doubt for doubt in found.doubts].count(True) == 1
    assert "ENGINE_LICENSE_KEY" not in str(found.doubts)
    assert said in " ".join(capsys.readouterr().err.split())
