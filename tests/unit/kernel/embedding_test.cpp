#include "gallop/kernel/embedding.h"

#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/embedding.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

struct Case {
  at::Tensor indices, weight, positions, dy;
};

Case make_case(int64_t batch, int64_t tokens, int64_t rows, int64_t columns, bool with_positions,
               at::ScalarType format = at::kFloat) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(rows * 1000 + columns));
  const auto numbers = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat).to(format);
  };
  return {at::randint(rows, {batch, tokens}, generator, at::kLong), numbers({rows, columns}),
          with_positions ? numbers({tokens + 3, columns}) : at::Tensor(),
          numbers({batch, tokens, columns})};
}

struct Results {
  at::Tensor y, weight, positions;
};

Results by_library(const Case& c, at::ScalarType format) {
  const auto weight = leaf(c.weight, format), positions = leaf(c.positions, format);
  auto y = at::embedding(weight, c.indices);
  if (positions.defined()) y = y + positions.narrow(0, 0, c.indices.size(1));
  y.backward(c.dy.to(format));
  return {y.detach(), weight.grad(), positions.defined() ? positions.grad() : at::Tensor()};
}

Results by_kernel(const Case& c) {
  const auto found = embedding_backward(c.dy, c.indices, c.weight.size(0),
                                        c.positions.defined() ? c.positions.size(0) : 0);
  return {kernel::embedding(c.indices, c.weight, c.positions), found.weight, found.positions};
}

TEST(Embedding, IsAsAccurateAsLibTorchForEveryShape) {
  for (const auto format : {at::kFloat, at::kBFloat16}) {
    for (const bool with_positions : {false, true}) {
      for (const auto& [batch, tokens, rows, columns] :
           std::vector<std::array<int64_t, 4>>{{1, 1, 1, 1},
                                               {3, 5, 7, 17},
                                               {16, 128, 65, 100},
                                               {2, 300, 1000, 64},
                                               {2, 10, 5000, 33}}) {
        const Case c = make_case(batch, tokens, rows, columns, with_positions, format);
        const auto found = by_kernel(c), truth = by_library(c, at::kDouble),
                   library = by_library(c, format);
        EXPECT_LE(error_of(found.y, truth.y), error_of(library.y, truth.y));
        // Sums of a few numbers, taken in an order of their own.
        const double rest = rounding_of(format) / 4;
        EXPECT_LE(error_of(found.weight, truth.weight),
                  error_of(library.weight, truth.weight) + rest)
            << rows << " " << columns << " " << format;
        EXPECT_EQ(found.weight.scalar_type(), format);
        ASSERT_EQ(found.positions.defined(), with_positions);
        if (!with_positions) continue;
        EXPECT_EQ(found.positions.sizes(), c.positions.sizes());
        EXPECT_LE(error_of(found.positions, truth.positions),
                  error_of(library.positions, truth.positions) + rest);
      }
    }
  }
}

class EmbeddingOfIsa : public IsaTest {};

TEST_P(EmbeddingOfIsa, AddsAndSumsRowsOfEveryWidth) {
  const auto kernels = kernels_for<EmbeddingKernels>(GetParam());
  const std::vector<int64_t> rows = {0, 3, 3, 1, 8, 8, 8, 2, 5};
  for (const int64_t columns : {1, 15, 16, 40, 65}) {
    const at::Tensor from = at::randn({9, columns + 2});
    const at::Tensor narrow = from.to(at::kBFloat16);
    const at::Tensor sum = at::empty({columns}), narrow_sum = at::empty({columns}, at::kBFloat16);
    kernels.sum_fp32(from.const_data_ptr<float>(), columns + 2, rows.data(), 9,
                     sum.mutable_data_ptr<float>(), columns);
    kernels.sum_bf16(static_cast<const Bf16*>(narrow.data_ptr()), columns + 2, rows.data(), 9,
                     static_cast<Bf16*>(narrow_sum.data_ptr()), columns);
    at::Tensor truth = at::zeros({columns}, at::kDouble), narrow_truth = at::zeros_like(truth);
    for (const int64_t row : rows) {
      truth += from[row].narrow(0, 0, columns);
      narrow_truth += narrow[row].narrow(0, 0, columns);
    }
    EXPECT_LE(error_of(sum, truth), 1e-6);
    EXPECT_LE(error_of(narrow_sum, narrow_truth), 2 * rounding_of(at::kBFloat16));
    kernels.sum_fp32(from.const_data_ptr<float>(), columns + 2, rows.data(), 0,
                     sum.mutable_data_ptr<float>(), columns);
    EXPECT_TRUE(sum.equal(at::zeros({columns})));
    kernels.add_fp32(from.const_data_ptr<float>(), from[4].const_data_ptr<float>(),
                     sum.mutable_data_ptr<float>(), columns);
    EXPECT_TRUE(sum.equal((from[0] + from[4]).narrow(0, 0, columns)));
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, EmbeddingOfIsa, every_isa());

TEST(Embedding, DoesNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const int64_t rows : {65, 50'000}) {
    const Case c = make_case(16, 128, rows, 200, true);
    std::vector<Results> results;
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      results.push_back(by_kernel(c));
    }
    at::set_num_threads(threads);
    for (const auto& result : results) {
      EXPECT_TRUE(result.weight.equal(results[0].weight));
      EXPECT_TRUE(result.positions.equal(results[0].positions));
    }
  }
}

TEST(Embedding, ReportsIndicesOutOfRange) {
  const Case c = make_case(2, 5, 10, 4, false);
  for (const int64_t wrong : {10, -1}) {
    c.indices[1][2].fill_(wrong);
    try {
      kernel::embedding(c.indices, c.weight, {});
      FAIL() << "no error";
    } catch (const DataError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("token " + std::to_string(wrong) + " at place 7"), text.npos) << text;
    }
    EXPECT_THROW(embedding_backward(c.dy, c.indices, 10, 0), DataError);
  }
}

TEST(Embedding, RejectsUnsupportedInputs) {
  const Case c = make_case(2, 5, 10, 4, true);
  EXPECT_TRUE(takes_embedding(c.indices, c.weight, c.positions));
  EXPECT_TRUE(takes_embedding(c.indices.flatten(), c.weight, {}));
  EXPECT_FALSE(takes_embedding(c.indices.t(), c.weight, {}));
  EXPECT_FALSE(takes_embedding(c.indices.to(at::kInt), c.weight, {}));
  EXPECT_FALSE(takes_embedding(c.indices, c.weight.t(), {}));
  EXPECT_FALSE(takes_embedding(c.indices, c.weight.to(at::kDouble), {}));
  EXPECT_FALSE(takes_embedding(c.indices, c.weight, c.positions.narrow(0, 0, 4)));
  EXPECT_FALSE(takes_embedding(c.indices, c.weight, c.positions.to(at::kBFloat16)));
  EXPECT_FALSE(takes_embedding(c.indices.narrow(0, 0, 0), c.weight, {}));
  EXPECT_THROW(kernel::embedding(c.indices, c.weight.t(), {}), InternalError);
  EXPECT_THROW(embedding_backward(c.dy, c.indices.narrow(0, 0, 1), 10, 0), InternalError);
  EXPECT_THROW(embedding_backward(c.dy, c.indices, 10, 4), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
