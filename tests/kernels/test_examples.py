"""The experiments in kernels/examples: what they compare is comparable, and each script runs from end to end."""

import hashlib
import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from examples import array_sorter, characters, report, transformer
from examples.report import mean_and_spread, table
from examples.transformer import Attention, Shape, make

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "kernels" / "examples"
ATTENTIONS: tuple[Attention, ...] = ("dot", "metric", "semidefinite")
EVERY_ATTENTION = pytest.mark.parametrize("attention", ATTENTIONS)


def small(attention: Attention) -> Shape:
    return Shape(5, 7, width=12, heads=2, head_width=8, hidden=9, blocks=2, attention=attention)


def played() -> characters.Text:
    """The play, with so much held out that a loss is told in moments."""
    text = characters.read_text(characters.PLAY)
    return replace(text, held_out=text.held_out[:8_000])


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "kernels"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / script), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# What is compared


@EVERY_ATTENTION
def test_a_model_does_not_see_what_it_predicts(attention: Attention) -> None:
    model, token_BN = make(small(attention), seed=1), torch.tensor([[0, 1, 2, 3, 4, 0, 1]])
    changed_BN = token_BN.clone()
    changed_BN[:, 4:] = 2
    before, after = model(token_BN), model(changed_BN)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:])


def test_models_have_the_same_number_of_weights_and_the_light_one_has_fewer() -> None:
    shapes = {arm: characters.shape_of(arm, 68) for arm in characters.ARMS}
    heavy = {arm: transformer.weights(shape) for arm, shape in shapes.items()}
    unit = 2 * (2 * 64 + 1)  # one more unit of the feed-forward layer in both blocks
    assert all(abs(heavy[arm] - heavy["dot"]) <= unit / 2 for arm in ("metric", "metric-heads", "semidefinite"))
    assert heavy["metric-light"] < 0.9 * heavy["dot"]
    assert shapes["metric-heads"].heads > shapes["metric"].heads
    sorter = transformer.as_heavy_as(small("metric"), small("dot"))
    assert sorter.hidden > small("metric").hidden


@EVERY_ATTENTION
def test_weights_and_cache_that_are_told_are_those_of_the_model(attention: Attention) -> None:
    shape = small(attention)
    model = make(shape, seed=0)
    block = model.blocks[0]
    assert isinstance(block, transformer.Block)
    assert transformer.weights(shape) == sum(weight.numel() for weight in model.parameters())
    assert transformer.attention_weights(shape) == sum(weight.numel() for weight in block.attention.parameters())
    numbers = {"dot": 2 * 2 * 8, "metric": 2 * 8, "semidefinite": 2 * 8}[attention]  # k and v, or p for both
    assert transformer.cache(shape) == numbers
    full = {"dot": 0, "metric": 2 * 8 * 8, "semidefinite": 2 * 8 * 8}[attention]  # p M
    assert transformer.attention_products(shape) == full + sum(
        layer.weight.numel() for layer in block.attention.children() if isinstance(layer, nn.Linear)
    )


def test_the_same_seed_gives_the_same_curve_and_leaves_the_generator_alone() -> None:
    text = played()
    shape, before = characters.shape_of("metric", len(text.characters)), torch.get_rng_state()
    first, again = (characters.learn(shape, text, steps=2, rate=1e-3, seed=3, length=5) for _ in range(2))
    assert first == again
    assert len(first.sample) == 5
    assert torch.equal(before, torch.get_rng_state())


def test_learning_lowers_the_held_out_loss_which_begins_near_that_of_a_guess() -> None:
    text = played()
    done = characters.learn(characters.shape_of("metric", len(text.characters)), text, 30, 8e-3, seed=0, length=0)
    assert done.steps[:2] == [0, 2]
    assert done.losses[0] == pytest.approx(math.log(len(text.characters)), abs=0.4)
    assert done.losses[-1] < done.losses[0] - 1


# The text


def test_the_play_is_byte_for_byte_the_one_of_the_corpus_and_its_last_tenth_is_held_out() -> None:
    content = characters.PLAY.read_bytes()
    assert hashlib.sha256(content).hexdigest() == "eaa3526fe53859f34ecdf255712f9ecf0b2c903451d4755b2edaa2e2599cb0fc"
    text = characters.read_text(characters.PLAY)
    whole = "".join(text.characters[place] for place in torch.cat([text.learned, text.held_out]).tolist())
    assert whole == content.decode()
    assert len(text.held_out) == len(content) // 10


def test_held_out_loss_is_that_of_each_next_character() -> None:
    class Sure(nn.Module):
        """Sure that the next of 0, 1, 2, 3 follows, round and round."""

        def loss(self, token_BN: Tensor, target_BN: Tensor) -> Tensor:
            return ((token_BN + 1) % 4 != target_BN).double().mean()

    text_N = torch.arange(3 * characters.POSITIONS + 1) % 4
    assert characters.held_out_loss(Sure(), text_N) == 0  # type: ignore[arg-type]
    assert characters.held_out_loss(Sure(), text_N.flip(0)) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"too short", "has 9 characters; at least 650 are needed"),
        (b"\xff" * 700, "'utf-8' codec can't decode byte 0xff"),
        (b"a" * (characters.LARGEST + 1), "is larger than 10,000,000 bytes; take a part of it"),
    ],
    ids=["short", "not UTF-8", "large"],
)
def test_a_text_that_cannot_be_used_is_refused_with_the_reason(
    content: bytes, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(SystemExit, match="2"):
        characters.main(["--text", str(tmp_path / "text.txt")])
    assert message in capsys.readouterr().err


def test_the_shortest_text_that_is_taken_is_the_one_that_the_message_names(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("ab" * 325)
    assert len(characters.read_text(path).held_out) == characters.POSITIONS + 1
    path.write_text("ab" * 324 + "a")
    with pytest.raises(ValueError, match="has 649 characters; at least 650 are needed"):
        characters.read_text(path)


# The sorter


def test_an_array_counts_as_sorted_when_no_number_of_it_is_wrong() -> None:
    class Told(nn.Module):
        """Right of each array but for `wrong` places of the first."""

        def __init__(self, rows: array_sorter.Arrays, wrong: int) -> None:
            super().__init__()
            self.answer_RN = rows.target_RN.clamp(min=0)
            self.answer_RN[0, array_sorter.LENGTH : array_sorter.LENGTH + wrong] += 1

        def forward(self, token_RN: Tensor) -> Tensor:
            return one_hot(self.answer_RN, 5)

    learned, held_out = array_sorter.arrays()
    rows = len(held_out.token_RN)
    assert (len(learned.token_RN), rows) == (547, 182)
    assert not {tuple(row) for row in learned.token_RN.tolist()} & {tuple(row) for row in held_out.token_RN.tolist()}
    assert array_sorter.share_sorted(Told(held_out, 0), held_out) == 1  # type: ignore[arg-type]
    assert array_sorter.share_sorted(Told(held_out, 2), held_out) == pytest.approx(1 - 1 / rows)  # type: ignore[arg-type]


def test_targets_are_the_sorted_array_and_nothing_else() -> None:
    learned, _ = array_sorter.arrays()
    array_RL = learned.token_RN[:, : array_sorter.LENGTH]
    asked_RL = learned.target_RN[:, array_sorter.LENGTH - 1 :]
    assert torch.equal(asked_RL, array_RL.sort(1).values)
    assert (learned.target_RN[:, : array_sorter.LENGTH - 1] == transformer.IGNORED).all()
    assert torch.equal(learned.token_RN[:, array_sorter.LENGTH :], asked_RL[:, :-1])


def test_distances_are_those_of_the_projected_tokens_and_scores_those_of_queries_and_keys() -> None:
    shapes = {"metric": replace(array_sorter.DOT, attention="semidefinite"), "dot": array_sorter.DOT}
    for name, shape in shapes.items():
        model = make(shape, seed=2)
        block = model.blocks[0]
        assert isinstance(block, transformer.Block)
        x_VD = block.norm(model.token.weight + model.position.weight.mean(0))
        said_HVV = torch.tensor(array_sorter.heads_of(model).tokens)
        if name == "metric":
            # L is the identity before training: plain distances of p.
            p_HVK = (x_VD @ block.attention.enter.weight.T).unflatten(-1, (3, 16)).transpose(0, 1)
            expected_HVV = torch.cdist(p_HVK, p_HVK)
            assert torch.equal(said_HVV, said_HVV.mT)
        else:
            query, key, _ = (x_VD @ block.attention.enter.weight.T).unflatten(-1, (3, 3, 16)).permute(1, 2, 0, 3)
            expected_HVV = query @ key.mT / 4
        torch.testing.assert_close(said_HVV, expected_HVV, atol=2e-3, rtol=0)


def test_heads_are_in_order_when_the_ends_are_furthest_apart() -> None:
    assert array_sorter.in_order([[0, 1, 3], [1, 0, 2], [3, 2, 0]])
    assert not array_sorter.in_order([[0, 1, 2], [1, 0, 3], [2, 3, 0]])


# The scripts


def test_the_sorter_runs_and_writes_figures_and_pictures(tmp_path: Path) -> None:
    done = run("array_sorter.py", "--steps", "3", "--seeds", "2", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "| model | weights | held-out arrays sorted |" in done.stdout
    assert done.stdout.count("distances of metric, head") == done.stdout.count("scores of dot, head") == 3
    figures = json.loads((tmp_path / "array_sorter.json").read_text())
    assert {name: len(shares) for name, shares in figures["held_out_sorted"].items()} == {"dot": 2, "metric": 2}
    assert figures["settings"]["steps"] == 3
    assert figures["commit"] == report.commit(ROOT / "kernels")
    assert_picture(tmp_path / "array_sorter.svg", "metric, head 1", "dot, head 3")


def test_characters_run_and_write_figures_curves_and_samples(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text(characters.PLAY.read_text(encoding="utf-8")[:80_000], encoding="utf-8")
    options = ("--steps", "2", "--seeds", "2", "--sample", "9", "--arms", "dot", "metric-heads")
    done = run("characters.py", *options, "--text", str(tmp_path / "part.txt"), "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "characters.json").read_text())
    assert list(figures["models"]) == ["dot", "metric-heads"]
    for arm, model in figures["models"].items():
        last = [result["losses"][-1] for result in model["runs"]]
        assert len(last) == 2
        assert f"| {arm} | {mean_and_spread(last)} |" in done.stdout
        assert f"| {arm} | {model['weights']:,} |" in done.stdout
        assert f"{arm} writes:\n{model['runs'][0]['sample']}\n" in done.stdout
    assert_picture(tmp_path / "characters.svg", "metric-heads", "held-out loss")


def assert_picture(path: Path, *texts: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    picture = path.read_text()
    assert all(text in picture for text in texts)
    assert len(picture) < 100_000


@pytest.mark.parametrize("script", [array_sorter, characters])
def test_a_number_of_steps_below_one_is_refused(script: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        script.main(["--steps", "0"])  # type: ignore[attr-defined]
    assert "--steps and --seeds are at least 1" in capsys.readouterr().err


def test_a_table_gives_mean_and_spread() -> None:
    assert mean_and_spread([1.0, 2.0]) == "1.500 ± 0.707"
    assert mean_and_spread([1.25], 1) == "1.2"
    assert table(("a", "b"), [("x", 1)]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_figures_name_the_commit_and_whether_the_code_had_changes(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    assert report.commit(tmp_path) == "unknown"
    git("init")
    (tmp_path / "code.py").write_text("1")
    git("add", ".")
    git("commit", "-m", "code")
    name = git("rev-parse", "--short", "HEAD")
    (tmp_path / "figures.json").write_text("{}")
    assert report.commit(tmp_path) == name
    (tmp_path / "code.py").write_text("2")
    assert report.commit(tmp_path) == f"{name} with changes"


def test_what_a_model_writes_is_drawn_from_its_own_scores() -> None:
    class Turns(nn.Module):
        """Sure that b follows a and a follows b."""

        def forward(self, token_BN: Tensor) -> Tensor:
            return 100.0 * one_hot(1 - token_BN, 2)

    assert characters.write(Turns(), "ab", 6, seed=0) == "bababa"  # type: ignore[arg-type]


def test_the_readme_quotes_the_figures_that_are_kept() -> None:
    readme = (ROOT / "kernels" / "README.md").read_text(encoding="utf-8")
    models = json.loads((FOLDER / "characters.json").read_text(encoding="utf-8"))["models"]
    assert len(models) == 5
    losses = {arm: [result["losses"][-1] for result in model["runs"]] for arm, model in models.items()}
    for arm, model in models.items():
        shape, last = Shape(**model["shape"]), losses[arm]
        assert len(last) >= 3
        assert model["weights"] == transformer.weights(shape)
        costs = [transformer.attention_weights, transformer.attention_products, transformer.cache]
        numbers = [model["weights"], *(cost(shape) * shape.blocks for cost in costs)]
        gaps = [mine - dots for mine, dots in zip(last, losses["dot"], strict=True)]
        cells = [arm, *(f"{number:,}" for number in numbers), mean_and_spread(last)]
        cells += [mean_and_spread([math.exp(loss) for loss in last], 2), *([mean_and_spread(gaps)] * (arm != "dot"))]
        assert f"\n| {' | '.join(cells)} |{' |' * (arm == 'dot')}\n" in readme
    sorter = json.loads((FOLDER / "array_sorter.json").read_text(encoding="utf-8"))["held_out_sorted"]
    assert all(mean_and_spread(shares) in readme for shares in sorter.values())
    for name in ("array_sorter.svg", "characters.svg"):
        assert f"examples/{name}" in readme
        assert (FOLDER / name).stat().st_size < 100_000
