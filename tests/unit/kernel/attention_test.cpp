#include "gallop/kernel/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

struct Case {
  int64_t batch, tokens, heads, width;
  bool causal, rotary;
  at::ScalarType type;
  Isa isa = best_isa();
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::to_string(c.batch) + "x" + std::to_string(c.tokens) + "x" + std::to_string(c.heads) +
         "x" + std::to_string(c.width) + (c.causal ? "_causal" : "") + (c.rotary ? "_rotary" : "") +
         (c.type == at::kFloat ? "_fp32" : "_bf16") + "_isa" +
         std::to_string(static_cast<int>(c.isa));
}

// Every step of attention as its formula says, in the type of qkv, with its gradient by hand.
struct Formula {
  at::Tensor y, dqkv;

  Formula(const at::Tensor& qkv_BT3HD, const at::Tensor& dy_BTHD, const AttentionOptions& options) {
    const int64_t B = qkv_BT3HD.size(0), T = qkv_BT3HD.size(1), H = qkv_BT3HD.size(3),
                  D = qkv_BT3HD.size(4);
    const auto flat = [&](const at::Tensor& x_BTHD) {
      return x_BTHD.transpose(1, 2).reshape({B * H, T, D});
    };
    const auto back = [&](const at::Tensor& x) { return x.view({B, H, T, D}).transpose(1, 2); };
    const at::Tensor v = flat(qkv_BT3HD.select(2, 2));
    const at::Tensor q = turn(flat(qkv_BT3HD.select(2, 0)), options, 1);
    const at::Tensor k = turn(flat(qkv_BT3HD.select(2, 1)), options, 1);
    at::Tensor scores = at::bmm(q, k.transpose(1, 2)) * options.scale;
    if (options.causal) {
      scores = scores +
               at::full({T, T}, -std::numeric_limits<double>::infinity(), scores.options()).triu(1);
    }
    const at::Tensor p = at::softmax(scores, -1), dy = flat(dy_BTHD);
    y = back(at::bmm(p, v));
    const at::Tensor dv = at::bmm(p.transpose(1, 2), dy), dp = at::bmm(dy, v.transpose(1, 2));
    const at::Tensor ds = p * (dp - (dp * p).sum(-1, true)) * options.scale;
    const at::Tensor dq = turn(at::bmm(ds, k), options, -1),
                     dk = turn(at::bmm(ds.transpose(1, 2), q), options, -1);
    dqkv = at::stack({back(dq), back(dk), back(dv)}, 2);
  }

  static at::Tensor turn(const at::Tensor& x, const AttentionOptions& options, double sign) {
    if (!options.rotation_TD.defined()) return x;
    const int64_t half = x.size(2) / 2;
    const at::Tensor table = options.rotation_TD.to(x.scalar_type());
    const at::Tensor cosine = table.narrow(1, 0, half), sine = table.narrow(1, half, half) * sign;
    const at::Tensor a = x.narrow(2, 0, half), b = x.narrow(2, half, half);
    return at::cat({a * cosine - b * sine, b * cosine + a * sine}, 2);
  }
};

// Relative error, or absolute if the exact value is 0.
double error(const at::Tensor& x, const at::Tensor& truth) {
  const double size = truth.norm().item<double>();
  return (x.to(at::kDouble) - truth).norm().item<double>() / (size > 0 ? size : 1);
}

class AttentionOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    at::manual_seed(7);
    qkv = at::randn({c.batch, c.tokens, 3, c.heads, c.width}).to(c.type);
    dy = at::randn({c.batch, c.tokens, c.heads, c.width}).to(c.type);
    if (!has(c.isa)) GTEST_SKIP() << "this machine does not have these instructions";
    ASSERT_TRUE(takes_attention(qkv, c.causal));
    options = {.causal = c.causal, .scale = 1 / std::sqrt(static_cast<double>(c.width))};
    if (c.rotary) options.rotation_TD = rotation(c.tokens, c.width);
  }
  at::Tensor qkv, dy;
  AttentionOptions options;
};

TEST_P(AttentionOf, IsAsAccurateAsItsFormula) {
  const Formula truth(qkv.to(at::kDouble), dy.to(at::kDouble), options);
  const Formula stock(qkv, dy, options);
  const AttentionOutput output = attention_by(GetParam().isa, qkv, options);
  const at::Tensor dqkv = attention_backward_by(GetParam().isa, dy, qkv, output, options);
  const double least = GetParam().type == at::kFloat ? 5e-7 : 3e-3;
  EXPECT_LE(error(output.y_BTHD, truth.y), std::max(least, 1.05 * error(stock.y, truth.y)));
  for (int64_t which = 0; which < 3; ++which) {
    EXPECT_LE(
        error(dqkv.select(2, which), truth.dqkv.select(2, which)),
        std::max(least, 1.05 * error(stock.dqkv.select(2, which), truth.dqkv.select(2, which))))
        << which;
  }
}

TEST_P(AttentionOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const Isa isa = GetParam().isa;
  const AttentionOutput first = attention_by(isa, qkv, options);
  const at::Tensor gradient = attention_backward_by(isa, dy, qkv, first, options);
  for (const int count : {1, 3}) {
    at::set_num_threads(count);
    const AttentionOutput again = attention_by(isa, qkv, options);
    EXPECT_TRUE(at::equal(again.y_BTHD, first.y_BTHD));
    EXPECT_TRUE(at::equal(attention_backward_by(isa, dy, qkv, again, options), gradient));
  }
  at::set_num_threads(threads);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const bool causal : {false, true}) {
      all.push_back({2, 128, 4, 32, causal, false, type});
      all.push_back({1, 300, 2, 64, causal, true, type});
      all.push_back({3, 17, 1, 10, causal, true, type});
      all.push_back({2, 1, 3, 2, causal, false, type});
      all.push_back({1, 65, 2, 100, causal, false, type});
      all.push_back({1, 33, 1, 256, causal, true, type});
      all.push_back({5, 81, 2, 64, causal, false, type});
      all.push_back({2, 257, 3, 48, causal, false, type});
      for (const Isa isa : kLesserIsas) {
        all.push_back({1, 70, 2, 34, causal, true, type, isa});
        all.push_back({2, 128, 1, 32, causal, false, type, isa});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOf, testing::ValuesIn(cases()), name_of);

// Lengths of the documents in each row of `tokens`: none is short of its row's end.
std::vector<std::vector<int64_t>> some_documents(int64_t batch, int64_t tokens) {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t row = 0; row < batch; ++row) {
    auto& lengths = rows.emplace_back();
    for (int64_t left = tokens, next = 1 + row; left > 0; left -= lengths.back(), next += 19) {
      lengths.push_back(std::min(left, next));
    }
  }
  return rows;
}

at::Tensor position_ids_of(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<at::Tensor> all;
  for (const auto& lengths : rows) {
    std::vector<at::Tensor> row;
    for (const int64_t length : lengths) row.push_back(at::arange(length, at::kLong));
    all.push_back(at::cat(row));
  }
  return at::stack(all);
}

TEST_P(AttentionOf, DocumentsOfARowAreAsAlone) {
  const Isa isa = GetParam().isa;
  const auto rows = some_documents(qkv.size(0), qkv.size(1));
  AttentionOptions packed = options;
  packed.position_ids_BT = position_ids_of(rows);
  const AttentionOutput output = attention_by(isa, qkv, packed);
  const at::Tensor dqkv = attention_backward_by(isa, dy, qkv, output, packed);
  for (size_t row = 0; row < rows.size(); ++row) {
    int64_t begin = 0;
    for (const int64_t length : rows[row]) {
      const auto alone = [&](const at::Tensor& all) {
        return all.narrow(0, static_cast<int64_t>(row), 1).narrow(1, begin, length).contiguous();
      };
      const AttentionOutput wanted = attention_by(isa, alone(qkv), options);
      EXPECT_TRUE(at::equal(alone(output.y_BTHD), wanted.y_BTHD)) << row << ": " << begin;
      EXPECT_TRUE(at::equal(alone(dqkv),
                            attention_backward_by(isa, alone(dy), alone(qkv), wanted, options)))
          << row << ": " << begin;
      begin += length;
    }
  }
}

struct Rows {
  int64_t begin, size;
  at::Tensor of(const at::Tensor& x) const { return x.narrow(2, begin, size); }
};

// Two parts of the queries and of the keys, which have different sizes.
TEST_P(AttentionOf, BlocksMergeToTheWhole) {
  const Case& c = GetParam();
  options.rotation_TD.reset();
  const auto all = qkv.permute({2, 0, 3, 1, 4}).unbind(0);  // [B, H, T, D]
  const at::Tensor dy_BHTD = dy.transpose(1, 2);
  const Rows first{0, c.tokens / 3}, second{first.size, c.tokens - first.size};
  std::vector<std::pair<Rows, Rows>> blocks = {{first, first}, {second, first}, {second, second}};
  if (!c.causal) blocks.emplace_back(first, second);
  std::erase_if(blocks, [](const auto& one) { return one.first.size * one.second.size == 0; });
  const auto parts_of = [&](const Rows& queries, const Rows& keys) {
    return AttentionParts{queries.of(all[0]), keys.of(all[1]), keys.of(all[2])};
  };
  const auto is_causal = [&](const Rows& queries, const Rows& keys) {
    return c.causal && queries.begin == keys.begin;
  };

  // Sums of weights and of weighted values, in fp64.
  const at::Tensor sums = at::zeros({c.batch, c.heads, c.tokens}, at::kDouble);
  const at::Tensor y = at::zeros({c.batch, c.heads, c.tokens, c.width}, at::kDouble);
  for (const auto& [queries, keys] : blocks) {
    const AttentionParts parts = parts_of(queries, keys);
    ASSERT_TRUE(takes_attention_block(parts, is_causal(queries, keys)));
    const BlockAttentionOutput block =
        attention_block_by(c.isa, parts, is_causal(queries, keys), options.scale);
    const at::Tensor sum = block.log_sums_BHT.to(at::kDouble).exp();
    queries.of(sums).add_(sum);
    queries.of(y).add_(block.y_BHTD.to(at::kDouble).mul(sum.unsqueeze(3)));
  }
  y.div_(sums.unsqueeze(3));
  const Formula truth(qkv.to(at::kDouble), dy.to(at::kDouble), options);
  const double tolerance = c.type == at::kFloat ? 1e-6 : 1e-2;
  EXPECT_LE(error(y.transpose(1, 2), truth.y), tolerance);

  const BlockAttentionOutput whole{y.to(c.type), sums.log().to(at::kFloat)};
  std::vector<at::Tensor> gradients(3);
  for (at::Tensor& one : gradients) one = at::zeros(y.sizes(), at::kDouble);
  for (const auto& [queries, keys] : blocks) {
    const AttentionParts own =
        attention_block_backward_by(c.isa, queries.of(dy_BHTD), parts_of(queries, keys),
                                    {queries.of(whole.y_BHTD), queries.of(whole.log_sums_BHT)},
                                    is_causal(queries, keys), options.scale);
    queries.of(gradients[0]).add_(own.query_BHTD);
    keys.of(gradients[1]).add_(own.key_BHSD);
    keys.of(gradients[2]).add_(own.value_BHSD);
  }
  for (size_t i = 0; i < 3; ++i) {
    const at::Tensor wanted = truth.dqkv.select(2, static_cast<int64_t>(i));
    EXPECT_LE(error(gradients[i].transpose(1, 2), wanted), tolerance) << i;
  }
}

TEST(Attention, RejectsPositionsThatDoNotCount) {
  const at::Tensor qkv = at::zeros({1, 4, 3, 1, 8});
  for (const std::vector<int64_t>& ids :
       {std::vector<int64_t>{1, 2, 3, 4}, {0, 2, 3, 4}, {0, 1, 1, 2}, {0, 1, -1, 0}}) {
    const AttentionOptions options{.causal = true, .position_ids_BT = at::tensor(ids).view({1, 4})};
    EXPECT_THROW(attention(qkv, options), DataError);
  }
}

TEST(Attention, DoesNotOverflowForLargeScores) {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor qkv = (at::randn({1, 40, 3, 2, 16}) * 100).to(type);
    const at::Tensor dy = at::randn({1, 40, 2, 16}).to(type);
    const AttentionOptions options{.causal = true, .scale = 1};
    const AttentionOutput output = attention(qkv, options);
    EXPECT_TRUE(output.y_BTHD.isfinite().all().item<bool>());
    const Formula truth(qkv.to(at::kDouble), dy.to(at::kDouble), options);
    EXPECT_LT(error(output.y_BTHD, truth.y), type == at::kFloat ? 1e-4 : 1e-2);
    EXPECT_TRUE(attention_backward(dy, qkv, output, options).isfinite().all().item<bool>());
  }
}

TEST(Attention, RejectsUnsupportedInputs) {
  EXPECT_TRUE(takes_attention(at::zeros({1, 2048, 3, 1, 8}), true));
  EXPECT_FALSE(takes_attention(at::zeros({1, 2048, 3, 1, 8}), false));
  EXPECT_FALSE(takes_attention(at::zeros({1, 4, 3, 1, 8}, at::kDouble), true));
  EXPECT_FALSE(takes_attention(at::zeros({1, 4, 3, 1, 7}), true));
  EXPECT_FALSE(takes_attention(at::zeros({1, 4, 3, 1, 512}), true));
  EXPECT_FALSE(takes_attention(at::zeros({1, 4096, 3, 1, 8}), true));
  EXPECT_FALSE(takes_attention(at::zeros({1, 3, 4, 1, 8}).transpose(1, 2), true));
  const auto takes_block = [](const at::Tensor& query, const at::Tensor& key, bool causal = false) {
    return takes_attention_block({query, key, key}, causal);
  };
  const at::Tensor query = at::zeros({1, 2, 5, 8});
  EXPECT_TRUE(takes_block(query, at::zeros({1, 2, 1024, 8})));
  EXPECT_TRUE(takes_block(at::zeros({1, 2, 4096, 8}), query));
  EXPECT_FALSE(takes_block(query, at::zeros({1, 2, 1025, 8})));
  EXPECT_FALSE(takes_block(query, query.to(at::kBFloat16)));
  EXPECT_FALSE(takes_block(query, at::zeros({1, 2, 8, 5}).transpose(2, 3)));
}

}  // namespace
}  // namespace gallop::kernel
