"""The maths of the model against cases worked by hand and against loops that follow the papers."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from textcls_torch.models.ops import attention, mixing


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + sum(shape)))


def masks(*lengths: int, width: int) -> Tensor:
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def test_masked_softmax_of_a_case_worked_by_hand() -> None:
    score_BTX = torch.tensor([[[0.0], [math.log(3)], [50.0]]], dtype=torch.float64)
    probability_BTX = attention.masked_softmax(score_BTX, masks(2, width=3))
    torch.testing.assert_close(probability_BTX, torch.tensor([[[0.25], [0.75], [0.0]]], dtype=torch.float64))


def test_masked_softmax_of_an_empty_text_is_a_number() -> None:
    probability_BTX = attention.masked_softmax(random(1, 4, 2), masks(0, width=4))
    torch.testing.assert_close(probability_BTX, torch.full((1, 4, 2), 0.25, dtype=torch.float64))


def test_norm_weights_of_a_case_worked_by_hand() -> None:
    # p = (0.6, 0.4), q = (1, 0.5): the sum of p^2 q is 0.36 + 0.08 = 0.44.
    probability_BTS = torch.tensor([[[0.6], [0.4]]], dtype=torch.float64)
    squared_norm_BT1 = torch.tensor([[[1.0], [0.5]]], dtype=torch.float64)
    expected = torch.tensor([[[0.6], [0.4]]], dtype=torch.float64) / math.sqrt(0.44)
    torch.testing.assert_close(attention.norm_weights(probability_BTS, squared_norm_BT1), expected)


def test_norm_weights_give_orthogonal_features_a_pooled_vector_of_length_one() -> None:
    # Three tokens with one feature each, c_r e_r with orthonormal e_r, so that q_t = c_r^2.
    weight_T = torch.tensor([1.0, 0.4, 0.7], dtype=torch.float64)
    probability_BTS = attention.masked_softmax(random(1, 3, 2), masks(3, width=3))
    weight_BTS = attention.norm_weights(probability_BTS, weight_T.square().view(1, 3, 1))
    pooled_BSD = weight_BTS.transpose(1, 2) @ torch.diag(weight_T).unsqueeze(0)
    torch.testing.assert_close(pooled_BSD.norm(dim=-1), torch.ones(1, 2, dtype=torch.float64))


@pytest.mark.parametrize("score", [-1.0, -16.0, -30.0])
def test_a_token_in_vocabulary_has_one_weight_however_far_its_score_is_below_that_of_one_outside(score: float) -> None:
    probability_BTS = attention.masked_softmax(torch.tensor([[[0.0], [score]]]), masks(2, width=2))
    squared_norm_BT1 = torch.tensor([[[0.0], [2.0]]])
    weight_BTS = attention.norm_weights(probability_BTS, squared_norm_BT1)
    assert weight_BTS[0, 1].item() == pytest.approx(math.sqrt(0.5), rel=1e-5)
    torch.testing.assert_close(
        attention.norm_fractions(probability_BTS, squared_norm_BT1)[0, :, 0], torch.tensor([0.0, 1.0])
    )


def test_norm_weights_are_zero_where_all_squared_norms_are_with_finite_gradients() -> None:
    probability_BTS, squared_norm_BT1 = (
        torch.full((1, 2, 1), 0.5, requires_grad=True),
        torch.zeros(1, 2, 1, requires_grad=True),
    )
    weight_BTS = attention.norm_weights(probability_BTS, squared_norm_BT1)
    weight_BTS.sum().backward()  # type: ignore[no-untyped-call]
    assert not weight_BTS.any()
    for given in (probability_BTS, squared_norm_BT1):
        assert given.grad is not None
        assert given.grad.isfinite().all()


def test_norm_contributions_of_a_case_worked_by_hand() -> None:
    # Shares of the norm 0.75 and 0.25; the tokens say 4 and 0, in all 4: 6 - 0.375 * 4 and 0 - 0.125 * 4.
    token_logit_BTSC = torch.tensor([[[[4.0]], [[0.0]]]])
    fraction_BTS = torch.tensor([[[0.75], [0.25]]])
    found = attention.norm_attributions(token_logit_BTSC, fraction_BTS)
    torch.testing.assert_close(found, torch.tensor([[[4.5], [-0.5]]]))


def norm_logits(token_logit_BTSC: Tensor, weight_T: Tensor, squared_norm_T: Tensor) -> Tensor:
    """Logits where token t is there by a part weight_T of it, under `norm` attention with equal scores."""
    norm = (weight_T.square() * squared_norm_T).sum().sqrt()
    return (weight_T.view(1, -1, 1, 1) * token_logit_BTSC).sum((1, 2)) / norm


def test_norm_contributions_lie_halfway_between_what_tokens_say_and_the_aumann_shapley_value() -> None:
    tokens = 6
    token_logit_BTSC, squared_norm_T = random(1, tokens, 1, 3), random(tokens).square()
    weighted = token_logit_BTSC / squared_norm_T.sum().sqrt()
    fraction_BTS = (squared_norm_T / squared_norm_T.sum()).view(1, -1, 1)
    # The value of each token is the integral of what it adds where all are there with chance s, from 0 to 1: the
    # expectation of the square is s sum q, so the derivative is that of n(s) / sqrt(s sum q), here by quadrature.
    node, mass = (torch.from_numpy(array) for array in np.polynomial.legendre.leggauss(20))
    value = torch.zeros(tokens, 3, dtype=torch.float64)
    for root, share in zip((node + 1) / 2, mass / 2, strict=True):
        s = root**2  # ds = 2 root d(root), which takes the singularity at 0 away
        square = s * squared_norm_T.sum()
        slope = (
            token_logit_BTSC[0, :, 0] / square.sqrt()
            - 0.5 * s * token_logit_BTSC.sum((1, 2)) * squared_norm_T[:, None] / square**1.5
        )
        value += share * 2 * root * slope
    expected = (weighted.sum(2)[0] + value) / 2
    torch.testing.assert_close(attention.norm_attributions(weighted, fraction_BTS)[0], expected)


def test_the_aumann_shapley_value_ranks_tokens_of_small_fractions_as_taking_them_out_does() -> None:
    tokens = 400
    token_logit_BTSC, squared_norm_T = random(1, tokens, 1, 1), random(tokens).square() + 1
    everyone = torch.ones(tokens, dtype=torch.float64)
    full = norm_logits(token_logit_BTSC, everyone, squared_norm_T)
    drop = torch.stack(
        [
            full - norm_logits(token_logit_BTSC, everyone.index_fill(0, torch.tensor([t]), 0), squared_norm_T)
            for t in range(tokens)
        ]
    ).flatten()
    fraction_BTS = (squared_norm_T / squared_norm_T.sum()).view(1, -1, 1)
    weighted = token_logit_BTSC / squared_norm_T.sum().sqrt()
    value = 2 * attention.norm_attributions(weighted, fraction_BTS) - weighted.sum(2)
    torch.testing.assert_close(value.flatten() / 2, drop, atol=3 * float(fraction_BTS.max()), rtol=0.02)


def test_attributions_of_a_text_add_up_whatever_the_squared_norms() -> None:
    probability_BTS = attention.masked_softmax(random(3, 5, 2), masks(5, 2, 0, width=5))
    squared_norm_BT1 = random(3, 5, 1).square() * masks(5, 2, 0, width=5).unsqueeze(-1)
    token_logit_BTSC = random(3, 5, 2, 4) * squared_norm_BT1.unsqueeze(-1)
    found = attention.norm_attributions(token_logit_BTSC, attention.norm_fractions(probability_BTS, squared_norm_BT1))
    torch.testing.assert_close(found.sum(1), token_logit_BTSC.sum((1, 2)))
    assert not found[2].any()


def test_the_rationale_loss_of_a_case_worked_by_hand() -> None:
    # Two of three tokens are marked; two seeds, whose mean is what counts. The second text has no mark.
    probability_BTS = torch.tensor([[[0.5, 0.3], [0.3, 0.3], [0.2, 0.4]], [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]])
    rationale_BT = torch.tensor([[True, False, True], [False, False, False]])
    expected = torch.tensor([-(math.log(0.4) + math.log(0.3)) / 2, 0.0])
    torch.testing.assert_close(attention.rationale_loss(probability_BTS, rationale_BT), expected)


def test_cosine_scores_are_scaled_cosines() -> None:
    x_BTD, seed_SD = random(2, 3, 4), random(2, 4)
    score_BTS = attention.cosine_scores(x_BTD, seed_SD, torch.tensor(5.0, dtype=torch.float64))
    for b in range(2):
        for t in range(3):
            for s in range(2):
                x, seed = x_BTD[b, t].tolist(), seed_SD[s].tolist()
                dot = sum(i * j for i, j in zip(x, seed, strict=True))
                assert score_BTS[b, t, s].item() == pytest.approx(5 * dot / math.hypot(*x) / math.hypot(*seed))


def test_cosine_scores_of_a_token_out_of_vocabulary_are_zero_with_finite_gradients() -> None:
    x_BTD = torch.zeros(1, 2, 3, requires_grad=True)
    score_BTS = attention.cosine_scores(x_BTD, torch.ones(1, 3), torch.tensor(5.0))
    score_BTS.sum().backward()  # type: ignore[no-untyped-call]
    assert not score_BTS.any()
    assert x_BTD.grad is not None
    assert x_BTD.grad.isfinite().all()


def test_fold_seed_of_a_case_worked_by_hand() -> None:
    # s = (1, 2); W_f s = (2, 0), W_c s = (1, -1).
    s_SD = torch.tensor([[1.0, 2.0]])
    forget_DD, candidate_DD = torch.tensor([[0.0, 1.0], [2.0, -1.0]]), torch.tensor([[1.0, 0.0], [1.0, -1.0]])
    expected = torch.tensor([[math.tanh(1) / (1 + math.exp(-2)), math.tanh(-1) / 2]])
    torch.testing.assert_close(attention.fold_seed(s_SD, forget_DD, candidate_DD), expected)


def test_a_metric_of_sqrt_d_on_the_diagonal_leaves_seeds_as_they_are_bit_for_bit() -> None:
    for D in (1, 6, 8, 32, 64, 100):
        s_SD = torch.randn(3, D, generator=torch.Generator().manual_seed(D))
        assert torch.equal(attention.metric_seed(s_SD, torch.eye(D) * math.sqrt(D)), s_SD)


def test_metric_scores_by_the_symmetric_part_of_a_metric_equal_sums_over_its_entries() -> None:
    s_SD, x_TD, metric_DD = random(2, 3), random(4, 3), random(3, 3)
    score_TS = x_TD @ attention.metric_seed(s_SD, metric_DD).T
    for t in range(4):
        for s in range(2):
            terms = [
                (metric_DD[k, m] + metric_DD[m, k]).item() / 2 * s_SD[s, k].item() * x_TD[t, m].item()
                for k in range(3)
                for m in range(3)
            ]
            assert score_TS[t, s].item() == pytest.approx(sum(terms) / math.sqrt(3))


def test_metric_pool_equals_folded_seeds_softmax_and_sum() -> None:
    mask_BT = masks(5, 1, 3, 0, width=5)
    s_SD, x_BTD, metric_DD = random(2, 8), random(4, 5, 8) * mask_BT.unsqueeze(-1), random(8, 8)
    probability_BTS = attention.masked_softmax(x_BTD @ attention.metric_seed(s_SD, metric_DD).T, mask_BT)
    pooled_BSD, found_BTS = attention.metric_pool(s_SD, x_BTD, metric_DD, mask_BT)
    torch.testing.assert_close(found_BTS, probability_BTS * mask_BT.unsqueeze(-1))
    torch.testing.assert_close(pooled_BSD, probability_BTS.transpose(1, 2) @ x_BTD)


def test_metric_mix_equals_loops_over_texts_heads_and_tokens() -> None:
    lengths, H, K = (4, 1, 0), 2, 8
    mask_BT = masks(*lengths, width=4)
    p_BTHK, metric_HL = random(3, 4, H, K), random(H, K * (K + 1) // 2)
    t_BTHK = mixing.metric_mix(p_BTHK, metric_HL, mask_BT)
    for h in range(H):
        upper_KK = torch.zeros(K, K, dtype=torch.float64)
        upper_KK[torch.triu_indices(K, K).unbind()] = metric_HL[h]
        metric_KK = upper_KK + upper_KK.T - upper_KK.diag().diag()
        for b, n in enumerate(lengths):
            for c in range(n):
                r_T = torch.stack([p_BTHK[b, c, h] @ metric_KK @ p_BTHK[b, d, h] for d in range(n)]) / math.sqrt(K)
                torch.testing.assert_close(t_BTHK[b, c, h], r_T.softmax(0) @ p_BTHK[b, :n, h])
    assert not t_BTHK[~mask_BT].any()


@pytest.mark.parametrize("window", [0, 1, 3, 7], ids=lambda w: f"window of {w}")
def test_lambda_mix_equals_the_loop_of_the_paper(window: int) -> None:
    lengths, T, K, V = (5, 1, 3), 5, 2, 3
    mask_BT = masks(*lengths, width=T)
    q_BTK, k_BTK, v_BTV = random(3, T, K), random(3, T, K, seed=1), random(3, T, V) * mask_BT.unsqueeze(-1)
    position_KW = random(K, window) if window else None
    y_BTV = mixing.lambda_mix(q_BTK, k_BTK, v_BTV, mask_BT, position_KW)
    for b, length in enumerate(lengths):
        k_bar = [[math.exp(k_BTK[b, m, k].item()) for k in range(K)] for m in range(length)]
        total = [sum(row[k] for row in k_bar) for k in range(K)]
        for n in range(length):
            lambda_KV = torch.zeros(K, V, dtype=torch.float64)
            for m in range(length):
                for k in range(K):
                    lambda_KV[k] += k_bar[m][k] / total[k] * v_BTV[b, m]
                    if position_KW is not None and abs(m - n) <= window // 2:
                        lambda_KV[k] += position_KW[k, m - n + window // 2] * v_BTV[b, m]
            torch.testing.assert_close(y_BTV[b, n], lambda_KV.T @ q_BTK[b, n])


@pytest.mark.parametrize("matrix_tokens", [0, 256], ids=["convolved", "by a matrix"])
@pytest.mark.parametrize(("reach", "T"), [(0, 4), (2, 6), (9, 5), (3, 1)])
def test_spatial_gate_equals_an_explicit_toeplitz_matrix(
    monkeypatch: pytest.MonkeyPatch, reach: int, T: int, matrix_tokens: int
) -> None:
    monkeypatch.setattr(mixing, "MATRIX_TOKENS", matrix_tokens)
    lengths, F = (T, max(1, T - 2)), 3
    mask_BT = masks(*lengths, width=T)
    z_BTF, filter_W, bias = random(2, T, F), random(2 * reach + 1), torch.tensor(0.7, dtype=torch.float64)
    toeplitz_TT = torch.zeros(T, T, dtype=torch.float64)
    for t in range(T):
        for u in range(T):
            if abs(u - t) <= reach:
                toeplitz_TT[t, u] = filter_W[u - t + reach]
    torch.testing.assert_close(mixing.toeplitz(filter_W, T), toeplitz_TT)
    found_BTF = mixing.spatial_gate(z_BTF, filter_W, bias, mask_BT)
    for b, n in enumerate(lengths):
        torch.testing.assert_close(found_BTF[b, :n], toeplitz_TT[:n, :n] @ z_BTF[b, :n] + bias)


def test_the_softmax_of_kernel_scores_normalises_a_kernel() -> None:
    x_BTD, seed_SD, mask_BT = random(2, 4, 3), random(2, 3), masks(4, 2, width=4)
    probability_BTS = attention.masked_softmax(attention.kernel_scores(x_BTD, seed_SD), mask_BT)

    def phi(x_D: Tensor) -> list[float]:
        return [v + 1 if v > 0 else math.exp(v) for v in x_D.tolist()]

    for b, n in enumerate((4, 2)):
        for s in range(2):
            like = [sum(i * j for i, j in zip(phi(x_BTD[b, t]), phi(seed_SD[s]), strict=True)) for t in range(n)]
            for t in range(n):
                assert probability_BTS[b, t, s].item() == pytest.approx(like[t] / sum(like))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_average_pool_equals_poolformers_own_on_each_text_alone(size: int) -> None:
    lengths = (6, 2, 1)
    mask_BT = masks(*lengths, width=6)
    x_BTD = random(3, 6, 2) * mask_BT.unsqueeze(-1)
    found_BTD = mixing.average_pool(x_BTD, mask_BT, size)
    for b, n in enumerate(lengths):
        x_1DT = x_BTD[b : b + 1, :n].transpose(1, 2)
        pooled_1DT = functional.avg_pool1d(x_1DT, size, 1, size // 2, count_include_pad=False)
        torch.testing.assert_close(found_BTD[b, :n], (pooled_1DT - x_1DT)[0].T)


def test_fourier_mix_equals_the_fft_of_each_text_alone() -> None:
    lengths, D = (7, 4, 1), 6
    mask_BT = masks(*lengths, width=7)
    x_BTD = random(3, 7, D) * mask_BT.unsqueeze(-1)
    found_BTD = mixing.fourier_mix(x_BTD, mask_BT, *mixing.cosines_sines(D))
    for b, n in enumerate(lengths):
        torch.testing.assert_close(found_BTD[b, :n], torch.fft.fft2(x_BTD[b, :n], norm="ortho").real)


def test_fourier_mix_keeps_its_digits_in_a_long_text() -> None:
    x_1TD = random(1, 2048, 4)
    exact_TD = torch.fft.fft2(x_1TD[0], norm="ortho").real
    cosine_DD, sine_DD = (matrix.float() for matrix in mixing.cosines_sines(4))
    found_TD = mixing.fourier_mix(x_1TD.float(), masks(2048, width=2048), cosine_DD, sine_DD)[0]
    torch.testing.assert_close(found_TD.double(), exact_TD, atol=1e-4, rtol=0)


@pytest.mark.parametrize("tokens", [3, 5, 9], ids=lambda n: f"{n} of 5 tokens")
def test_token_mlp_equals_two_linear_layers_over_the_transposed_text(tokens: int) -> None:
    lengths, hidden = (5, 2), 4
    mask_BT = masks(*lengths, width=5)
    x_BTD = random(2, 5, 3)
    enter, back = nn.Linear(tokens, hidden).double(), nn.Linear(hidden, tokens).double()
    found_BTD = mixing.token_mlp(x_BTD, enter.weight, enter.bias, back.weight, back.bias, mask_BT)
    for b, n in enumerate(lengths):
        x_DN = torch.zeros(3, tokens, dtype=torch.float64)
        kept = min(n, tokens)
        x_DN[:, :kept] = x_BTD[b, :kept].T
        y_ND = back(functional.gelu(enter(x_DN))).T
        torch.testing.assert_close(found_BTD[b, :kept], y_ND[:kept])
        assert not found_BTD[b, tokens:].any()


def test_linear_attention_equals_the_quadratic_sum_of_the_paper() -> None:
    lengths = (5, 2)
    mask_BT = masks(*lengths, width=5)
    q_BTK, k_BTK, v_BTV = random(2, 5, 3), random(2, 5, 3, seed=1), random(2, 5, 4)
    found_BTV = mixing.linear_attention(q_BTK, k_BTK, v_BTV, mask_BT)
    for b, n in enumerate(lengths):
        like_TU = (functional.elu(q_BTK[b, :n]) + 1) @ (functional.elu(k_BTK[b, :n]) + 1).T
        expected_TV = like_TU / like_TU.sum(1, keepdim=True) @ v_BTV[b, :n]
        torch.testing.assert_close(found_BTV[b, :n], expected_TV)


def test_dot_product_attention_equals_pytorchs_own() -> None:
    mask_BT = masks(5, 2, width=5)
    q_BTK, k_BTK, v_BTV = random(2, 5, 3), random(2, 5, 3, seed=1), random(2, 5, 4)
    expected_BTV = functional.scaled_dot_product_attention(q_BTK, k_BTK, v_BTV, attn_mask=mask_BT.unsqueeze(1))
    torch.testing.assert_close(mixing.dot_product_attention(q_BTK, k_BTK, v_BTV, mask_BT), expected_BTV)


def test_dot_product_attention_of_an_empty_text_is_zero() -> None:
    q_BTK, k_BTK, v_BTV = (random(1, 3, 2, seed=i) for i in range(3))
    assert not mixing.dot_product_attention(q_BTK, k_BTK, v_BTV, masks(0, width=3)).any()


def test_a_kernel_probability_is_each_tokens_part_of_the_sum_of_a_kernel() -> None:
    # phi(1) = 2, phi(0) = 1, phi(log 1/4) = 1/4.
    k_BTK = torch.tensor([[[1.0], [0.0], [math.log(0.25)], [9.0]]], dtype=torch.float64)
    expected = torch.tensor([[[2.0], [1.0], [0.25], [0.0]]], dtype=torch.float64) / 3.25
    torch.testing.assert_close(mixing.kernel_probabilities(k_BTK, masks(3, width=4)), expected)


def test_a_lambda_with_a_kernel_sums_values_up_by_kernel_probabilities() -> None:
    mask_BT = masks(5, 2, width=5)
    q_BTK, k_BTK, v_BTV = random(2, 5, 3), random(2, 5, 3, seed=1), random(2, 5, 4) * mask_BT.unsqueeze(-1)
    found_BTV = mixing.lambda_mix(q_BTK, k_BTK, v_BTV, mask_BT, None, kernel=True)
    lambda_BKV = torch.einsum("btk,btv->bkv", mixing.kernel_probabilities(k_BTK, mask_BT), v_BTV)
    torch.testing.assert_close(found_BTV, torch.einsum("btk,bkv->btv", q_BTK, lambda_BKV))


@pytest.mark.parametrize("tokens", [3, 8], ids=lambda n: f"{n} of 5 tokens")
def test_full_spatial_gate_equals_a_matrix_over_the_first_tokens(tokens: int) -> None:
    lengths = (5, 2)
    mask_BT = masks(*lengths, width=5)
    z_BTF, weight_NN, bias_N = random(2, 5, 3), random(tokens, tokens), random(tokens)
    found_BTF = mixing.full_spatial_gate(z_BTF, weight_NN, bias_N, mask_BT)
    for b, n in enumerate(lengths):
        kept = min(n, tokens)
        expected = weight_NN[:kept, :kept] @ z_BTF[b, :kept] + bias_N[:kept, None]
        torch.testing.assert_close(found_BTF[b, :kept], expected)
    torch.testing.assert_close(found_BTF[0, tokens:], torch.ones_like(found_BTF[0, tokens:]))


def test_boom_of_a_case_worked_by_hand() -> None:
    # W v + b = (1, 2, 3, -1) for v = (1, 1); the halves of its gelu are summed up.
    x_BTD = torch.ones(1, 1, 2)
    enter_XD = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]])

    def gelu(z: float) -> float:
        return z * 0.5 * (1 + math.erf(z / math.sqrt(2)))

    expected = torch.tensor([[[gelu(1) + gelu(3), gelu(2) + gelu(-1)]]])
    torch.testing.assert_close(mixing.boom(x_BTD, enter_XD, torch.tensor([0.0, 1.0, 1.0, 0.0])), expected)
