#include "gallop/compile/recorder.h"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_nested_tensor_from_tensor_list.h>
#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/masked_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/prod.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/source_context.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/difference.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

// A function of one argument and of a state, and why it cannot be recorded.
struct Refused {
  std::string name;
  std::function<Tensors(const at::Tensor& x, const at::Tensor& state)> function;
  std::string reason;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class Refusal : public testing::TestWithParam<Refused> {};

TEST_P(Refusal, NamesTheReasonWithoutSideEffects) {
  const auto& function = GetParam().function;
  const at::Tensor x = at::arange(1, 7, at::kFloat).view({2, 3});
  const at::Tensor state = at::ones({2, 3});
  const at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state();
  const Recording recording = record(
      [&](const Tensors& inputs) -> Tensors {
        // Side effects that must not be visible.
        const at::Tensor noise = at::rand({2, 3});
        const at::NoGradGuard no_grad;
        state.add_(noise);
        inputs[0].mul_(2);
        const at::AutoGradMode grad(true);
        return function(inputs[0], state);
      },
      {x});
  EXPECT_NE(recording.refusal.find(GetParam().reason), std::string::npos) << recording.refusal;
  EXPECT_TRUE(recording.graph.nodes.empty());
  EXPECT_TRUE(recording.results.empty() && recording.changes.empty());
  EXPECT_EQ(state.sum().item<float>(), 6);
  EXPECT_EQ(state.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(x.sum().item<float>(), 21);
  EXPECT_TRUE(at::equal(generator.get_state(), before));
}

at::Tensor sparse_of(const at::Tensor& x) {
  return at::sparse_coo_tensor(at::arange(3).view({1, 3}), x.select(0, 0), {3},
                               at::TensorOptions(at::kFloat).layout(at::kSparse));
}

INSTANTIATE_TEST_SUITE_P(
    , Refusal,
    testing::Values(
        Refused{"Sparse", [](const auto& x, const auto&) -> Tensors { return {sparse_of(x)}; },
                "a tensor is not strided"},
        Refused{"Quantized",
                [](const auto& x, const auto&) -> Tensors {
                  return {at::quantize_per_tensor(x, 0.1, 0, at::kQInt8).dequantize()};
                },
                "is quantized"},
        Refused{"Nested",
                [](const auto& x, const auto&) -> Tensors {
                  return {at::_nested_tensor_from_tensor_list({x, x})};
                },
                "a tensor is"},
        Refused{"LazyNegative",
                [](const auto& x, const auto&) -> Tensors {
                  return {at::imag(at::complex(x, x).conj()).clone()};
                },
                "is a lazy negative"},
        Refused{"WriteToALazyConjugate",
                [](const auto& x, const auto&) -> Tensors {
                  const at::Tensor z = at::complex(x, x);
                  z.conj().copy_(z);
                  return {z};
                },
                "a lazy conjugate is written"},
        Refused{"LazyConjugateAsResult",
                [](const auto& x, const auto&) -> Tensors { return {at::complex(x, x).conj()}; },
                "a result is a lazy conjugate"},
        Refused{"SetOfATemporary",
                [](const auto& x, const auto&) -> Tensors { return {at::empty({0}).set_(x)}; },
                "aten::set_.source_Tensor changes the memory of a tensor"},
        Refused{"ResizeOfState",
                [](const auto&, const auto& state) -> Tensors { return {state.resize_({7})}; },
                "aten::resize_ changes the memory of a tensor"},
        Refused{"SizesOfState",
                [](const auto&, const auto& state) -> Tensors {
                  state.t_();
                  return {};
                },
                "aten::t_ changes the sizes of a tensor that was there before"},
        Refused{"OutOfAnotherSize",
                [](const auto& x, const auto&) -> Tensors {
                  at::Tensor out = at::empty({0});
                  at::add_out(out, x, x);
                  return {out};
                },
                "aten::add.out changes the size of what it writes"},
        Refused{"Mask", [](const auto& x, const auto&) -> Tensors { return {x.index({x.gt(2)})}; },
                "aten::index.Tensor has results whose sizes depend on the data"},
        Refused{
            "MaskedSelect",
            [](const auto& x, const auto&) -> Tensors { return {at::masked_select(x, x.gt(2))}; },
            "aten::masked_select has results whose sizes depend on the data"},
        Refused{"TruthOfATensor",
                [](const auto& x, const auto&) -> Tensors {
                  return {x.sum().template item<bool>() ? x : -x};
                },
                "aten::_local_scalar_dense reads a value on the host"},
        Refused{"Equal",
                [](const auto& x, const auto& state) -> Tensors {
                  return {at::equal(x, state) ? x : -x};
                },
                "aten::equal reads a value on the host"},
        Refused{"HostReadInABackwardHook",
                [](const auto& x, const auto&) -> Tensors {
                  const at::Tensor weight = at::ones({3}).requires_grad_();
                  const at::Tensor y = x * weight;
                  y.register_hook([](const at::Tensor& grad) {
                    return grad * grad.sum().template item<float>();
                  });
                  y.sum().backward();
                  return {weight.grad()};
                },
                "aten::_local_scalar_dense reads a value on the host"},
        Refused{"RefusalThatTheFunctionCatches",
                [](const auto& x, const auto&) -> Tensors {
                  try {
                    return {x * x.sum().template item<float>()};
                  } catch (...) {
                    return {};
                  }
                },
                "aten::_local_scalar_dense reads a value on the host"}),
    [](const auto& refused) { return refused.param.name; });

TEST(Record, PropagatesExceptions) {
  const at::Tensor state = at::ones({3});
  const auto fails = [&](const Tensors& inputs) -> Tensors {
    const at::NoGradGuard no_grad;
    state.add_(inputs[0]);
    throw std::out_of_range("my own");
  };
  EXPECT_THROW(record(fails, {at::ones({3})}), std::out_of_range);
  EXPECT_EQ(state.sum().item<float>(), 3);
  const auto misfits = [&](const Tensors& inputs) -> Tensors {
    return {inputs[0] + at::ones({4})};
  };
  EXPECT_THROW(record(misfits, {at::ones({3})}), c10::Error);
  // The next recording is not affected.
  EXPECT_EQ(record([](const Tensors& in) -> Tensors { return {in[0] + 1}; }, {state}).refusal, "");
}

TEST(Record, RefusesUnusualArguments) {
  const Function identity = [](const Tensors& inputs) { return inputs; };
  const at::Tensor x = at::ones({2, 3});
  EXPECT_EQ(record(identity, {x, at::Tensor()}).refusal, "argument 1 is undefined");
  EXPECT_EQ(record(identity, {sparse_of(x)}).refusal, "argument 0 is not strided");
  EXPECT_EQ(record(identity, {x, x.select(0, 1)}).refusal, "two arguments share memory");
}

TEST(Record, NamesTheSourceLineWhoseGradientCannotBeRecorded) {
  const auto product = [](const Tensors& inputs) -> Tensors {
    const at::Tensor x = inputs[0].detach().requires_grad_();
    at::Tensor loss;
    {
      const SourceContext context("net.py:12", [](const void* line) {
        return std::string(static_cast<const char*>(line));
      });
      loss = at::prod(x.exp());  // Its gradient reads where its input is zero.
    }
    {
      const SourceContext context("net.py:13", [](const void* line) {
        return std::string(static_cast<const char*>(line));
      });
      loss = loss * 2;
    }
    loss.backward();
    return {loss.detach()};
  };
  const Recording recording = record(product, {at::ones({3})});
  EXPECT_NE(recording.refusal.find("backward of net.py:12"), std::string::npos)
      << recording.refusal;
}

TEST(Record, RestoresGeneratorsGivenAsArguments) {
  at::Generator own = at::detail::createCPUGenerator(5);
  const Function draws = [&](const Tensors& inputs) -> Tensors {
    return {at::zeros_like(inputs[0]).uniform_(0, 1, own)};
  };
  const at::Tensor before = own.get_state();
  EXPECT_EQ(record(draws, {at::ones({3})}).refusal, "");
  EXPECT_TRUE(at::equal(own.get_state(), before));
}

TEST(Record, ArgumentsMayBePartOfLargerMemory) {
  CompiledFunction compiled([](const Tensors& in, int64_t) -> Tensors { return {in[0] * 2}; }, {});
  const at::Tensor large = at::arange(40, at::kFloat);
  for (int64_t i = 0; i < 4; ++i) {
    const at::Tensor x = i % 2 == 0 ? large.narrow(0, 5 * i, 4) : at::ones({4});
    EXPECT_TRUE(at::equal(compiled({x})[0], x * 2)) << i;
  }
  EXPECT_EQ(compiled.report().replayed, 4);
}

TEST(CompiledFunction, RunsEagerlyWithUnusualArguments) {
  CompiledFunction compiled(
      [](const Tensors& in, int64_t) -> Tensors {
        return {in[0].defined() ? in[0].to_dense() * 2 : at::zeros({})};
      },
      {});
  const at::Tensor x = at::ones({2, 3});
  EXPECT_EQ(compiled({at::Tensor()})[0].item<float>(), 0);
  EXPECT_EQ(compiled({sparse_of(x)})[0].sum().item<float>(), 6);
  EXPECT_EQ(compiled({x})[0].sum().item<float>(), 12);
  EXPECT_EQ(compiled.report().eager, 2);
  EXPECT_EQ(compiled.report().replayed, 1);
}

TEST(CompiledFunction, RunsEagerlyIfArgumentsShareMemory) {
  const at::Tensor state = at::ones({3});
  CompiledFunction compiled(
      [&](const Tensors& in, int64_t) -> Tensors {
        const at::Tensor before = in[1].sum();
        in[0].add_(state);
        return {in[1].sum() - before};
      },
      {});
  const auto fresh = [] { return at::ones({3}); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(compiled({fresh(), fresh()})[0].item<float>(), 0);
  const at::Tensor x = fresh();
  EXPECT_EQ(compiled({x, x})[0].item<float>(), 3);
  EXPECT_EQ(compiled({state, fresh()})[0].item<float>(), 0);
  EXPECT_EQ(state.sum().item<float>(), 6);
  EXPECT_EQ(compiled({fresh(), fresh()})[0].item<float>(), 0);
  EXPECT_EQ(compiled.report().eager, 2);
  EXPECT_EQ(compiled.report().replayed, 4);
}

TEST(CompiledFunction, NestedFunctionsAreInlined) {
  CompiledFunction inner([](const Tensors& in, int64_t) -> Tensors { return {in[0] + 1}; }, {});
  CompiledFunction outer(
      [&](const Tensors& in, int64_t) -> Tensors { return {inner({in[0] * 2})[0] * 3}; }, {});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(outer({at::ones({})})[0].item<float>(), 9);
  EXPECT_EQ(outer.report().replayed, 4);
}

TEST(CompiledFunction, HasOneGraphPerGradientModeAndRecordsAgainIfWeightsAreFrozen) {
  const at::Tensor weight = at::ones({2}).requires_grad_(), other = at::ones({2}).requires_grad_();
  CompiledFunction compiled(
      [&](const Tensors& in, int64_t) -> Tensors {
        const at::Tensor loss = (in[0] * weight * other).sum();
        if (!loss.requires_grad()) return {loss.detach()};
        weight.mutable_grad().reset();
        other.mutable_grad().reset();
        loss.backward();
        return {other.grad().defined() ? other.grad() * 1 : at::zeros({})};
      },
      {weight, other});
  const at::Tensor x = at::full({2}, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(compiled({x})[0].sum().item<float>(), 6);
  {
    const at::NoGradGuard no_grad;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(compiled({x})[0].item<float>(), 6);
  }
  EXPECT_EQ(compiled.report().graphs, 2);
  other.requires_grad_(false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(compiled({x})[0].sum().item<float>(), 0);
}

TEST(CompiledFunction, ReturnsCopiesOfItsState) {
  const at::Tensor state = at::ones({2, 3});
  CompiledFunction compiled(
      [&](const Tensors& in, int64_t) -> Tensors {
        return {state.add_(in[0]), state};
      },
      {state});
  for (int i = 1; i < 5; ++i) {
    const Tensors results = compiled({at::ones({3})});
    EXPECT_EQ(results[1].sizes(), at::IntArrayRef({2, 3}));
    EXPECT_EQ(results[0].sum().item<float>(), 6.0F * static_cast<float>(1 + i));
    results[1].t_();
  }
}

TEST(Constants, AreComparedBitwiseExceptForNan) {
  const auto same = [](double a, double b) {
    return is_same(c10::IValue(a), c10::IValue(b)) &&
           is_same(c10::IValue(std::vector<double>{1, a}),
                   c10::IValue(std::vector<double>{1, b})) &&
           is_same(c10::IValue(at::full({}, a)), c10::IValue(at::full({}, b)));
  };
  EXPECT_TRUE(same(2, 2));
  EXPECT_TRUE(same(NAN, NAN));
  EXPECT_FALSE(is_same(c10::IValue(0.0), c10::IValue(-0.0)));
  EXPECT_FALSE(
      is_same(c10::IValue(std::vector<double>{0.0}), c10::IValue(std::vector<double>{-0.0})));
  EXPECT_FALSE(is_same(c10::IValue(at::full({}, 0.0)), c10::IValue(at::full({}, -0.0))));
  EXPECT_FALSE(is_same(c10::IValue(1.0), c10::IValue(int64_t{1})));
}

}  // namespace
}  // namespace gallop::compile
