#include "gallop/compile/codegen/loop_program.h"

#include <functional>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/codegen/loop_plan.h"

namespace gallop::compile {
namespace {

using Strides = std::vector<int64_t>;

std::string mistake(const std::function<void(LoopBuilder&)>& make, int32_t row_dims = 1) {
  LoopBuilder b({4, 8}, row_dims);
  try {
    make(b);
    std::move(b).finish();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "none";
}

TEST(LoopProgram, ReportsMistakes) {
  const Strides all = {8, 1};
  const auto x = [&](LoopBuilder& b) { return b.input(Format::kFp32, {8, 1}); };
  EXPECT_EQ(mistake([&](LoopBuilder& b) { b.output(x(b), Format::kBf16, all); }), "none");
  EXPECT_EQ(mistake([&](LoopBuilder& b) { x(b); }), "loop program: no output");
  EXPECT_EQ(mistake([&](LoopBuilder& b) { b.output(x(b), Format::kFp32, {1}); }),
            "loop program: output 0 has 1 strides, but there are 2 dimensions");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              b.output(x(b), Format::kFp32, {8, -1});
            }),
            "loop program: output 0 has stride -1");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              b.output(x(b), Format::kFp32, {1, 0});
            }),
            "loop program: output 0 has stride 0 in dimension 1 of size 8");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              const Value whole = b.constant(3, Format::kInt64);
              b.output(b.apply(Op::kAdd, x(b), whole), Format::kFp32, all);
            }),
            "loop program: expression 2 (add) is of fp32 and int64; cast one of them");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              b.output(b.apply(Op::kExp, b.index(0)), Format::kInt64, all);
            }),
            "loop program: expression 1 (exp) does not take int64");
  EXPECT_EQ(
      mistake([&](LoopBuilder& b) { b.output(b.select(x(b), x(b), x(b)), Format::kFp32, all); }),
      "loop program: expression 3 (select) has a condition of fp32");
  EXPECT_EQ(mistake([&](LoopBuilder& b) { b.output(b.index(2), Format::kInt64, all); }),
            "loop program: expression 0 is of dimension 2, but there are 2");
  EXPECT_EQ(mistake(
                [&](LoopBuilder& b) {
                  b.output(b.apply(Op::kRowSum, x(b)), Format::kFp32, {1, 0});
                },
                0),
            "loop program: expression 1 reduces rows, but row_dims is 0");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              const Value in = x(b);
              b.output(b.apply(Op::kAdd, b.apply(Op::kColumnSum, in), in), Format::kFp32, all);
            }),
            "loop program: expression 2 (add) is of a column reduction and of what changes from "
            "row to row");
  EXPECT_EQ(
      mistake([&](LoopBuilder& b) { b.output(b.apply(Op::kColumnSum, x(b)), Format::kFp32, all); }),
      "loop program: output 0 is of a column reduction, but differs from row to row");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              const Value in = x(b);
              b.output(b.apply(Op::kAdd, b.apply(Op::kTotalSum, in), in), Format::kFp32, all);
            }),
            "loop program: expression 2 (add) is of a total and of what changes within the loop");
  EXPECT_EQ(mistake([&](LoopBuilder& b) {
              b.output(b.apply(Op::kTotalSum, x(b)), Format::kFp32, {0, 1});
            }),
            "loop program: output 0 is of a total, but differs within the loop");
  EXPECT_EQ(
      mistake([&](LoopBuilder& b) { b.output(b.apply(Op::kExp, Value{7}), Format::kFp32, all); }),
      "loop builder: a value that is not of this program");
  const LoopProgram wrong{.expressions = {{.op = Op::kExp, .arguments = {7, -1, -1}}}};
  try {
    check(wrong);
    ADD_FAILURE() << "no error";
  } catch (const InternalError& error) {
    EXPECT_STREQ(error.what(),
                 "loop program: expression 0 (exp) has argument 7, which is not an earlier one");
  }
  LoopProgram empty{.sizes = {3, 0}};
  EXPECT_THROW(check(empty), InternalError);
  LoopProgram huge{.sizes = {int64_t{1} << 40, int64_t{1} << 40}};
  EXPECT_THROW(check(huge), InternalError);
}

TEST(LoopBuilder, LeavesOutCastsThatChangeNothing) {
  for (const Format format : {Format::kBf16, Format::kFp16}) {
    const Format other = format == Format::kBf16 ? Format::kFp16 : Format::kBf16;
    LoopBuilder b({4, 8}, 1);
    const Value x = b.input(format, {8, 1});
    const Value y = b.input(other, {8, 1});
    const Value wide = b.input(Format::kFp32, {8, 1});
    const Value fp64 = b.input(Format::kFp64, {8, 1});
    const auto is_left_out = [&](Value value) {
      return b.cast(value, format).position == value.position;
    };
    const Value relu = b.apply(Op::kRelu, x), rounded = b.cast(b.apply(Op::kExp, x), format);
    EXPECT_TRUE(is_left_out(x));
    EXPECT_TRUE(is_left_out(rounded));
    EXPECT_TRUE(is_left_out(b.apply(Op::kMaximum, b.apply(Op::kNegate, relu), rounded)));
    EXPECT_TRUE(is_left_out(b.apply(Op::kRowMax, x)));
    EXPECT_TRUE(is_left_out(b.apply(Op::kSign, wide)));
    EXPECT_TRUE(is_left_out(b.apply(Op::kClampMin, x, 0.125)));
    EXPECT_TRUE(is_left_out(b.select(b.apply(Op::kLess, wide, 0.1), x, b.constant(-3))));
    EXPECT_TRUE(is_left_out(b.constant(0.1, format)));
    EXPECT_FALSE(is_left_out(wide));
    EXPECT_FALSE(is_left_out(y));
    EXPECT_FALSE(is_left_out(b.cast(wide, other)));
    EXPECT_FALSE(is_left_out(b.apply(Op::kAdd, x, x)));
    EXPECT_FALSE(is_left_out(b.apply(Op::kRowSum, x)));
    EXPECT_FALSE(is_left_out(b.apply(Op::kClampMin, x, 0.1)));
    EXPECT_FALSE(is_left_out(b.apply(Op::kMaximum, wide, x)));
    EXPECT_FALSE(is_left_out(b.constant(65520 * 4.001)));
    // Casts from other data types have that effect.
    EXPECT_EQ(b.kind(b.cast(b.apply(Op::kSign, fp64), format)), Format::kFp32);
    EXPECT_EQ(b.kind(b.cast(b.constant(3, Format::kInt64), format)), Format::kFp32);
  }
}

LoopPlan plan_of(Strides sizes, int32_t row_dims, const std::vector<Strides>& inputs,
                 const Strides& output) {
  LoopBuilder b(std::move(sizes), row_dims);
  Value sum = b.constant(0);
  for (const Strides& strides : inputs) {
    sum = b.apply(Op::kAdd, sum, b.input(Format::kFp32, strides));
  }
  b.output(sum, Format::kFp32, output);
  return plan(std::move(b).finish());
}

TEST(LoopPlan, MergesDimensionsInMemoryOrder) {
  // Channels last, all of one order: a single dimension.
  const Strides channels_last = {3 * 5 * 7, 1, 5 * 3, 3};
  EXPECT_EQ(plan_of({2, 3, 7, 5}, 0, {channels_last}, channels_last).program.sizes,
            (Strides{1, 2 * 3 * 5 * 7}));
  // With a number for each channel.
  const LoopPlan biased = plan_of({2, 3, 7, 5}, 0, {channels_last, {0, 1, 0, 0}}, channels_last);
  EXPECT_EQ(biased.program.sizes, (Strides{2 * 7 * 5, 3}));
  EXPECT_EQ(biased.program.inputs[1].strides, (Strides{0, 1}));
  // A transposed input.
  const LoopPlan turned = plan_of({6, 9}, 0, {{1, 6}}, {9, 1});
  EXPECT_EQ(turned.program.sizes, (Strides{6, 9}));
  EXPECT_EQ(turned.program.inputs[0].strides, (Strides{1, 6}));
  // A single element.
  EXPECT_EQ(plan_of({}, 0, {{}}, {}).program.sizes, (Strides{1, 1}));
}

TEST(LoopPlan, StoresExpensiveElementsForLaterSweeps) {
  LoopBuilder b({4, 8}, 1);
  const Value x = b.input(Format::kFp32, {8, 1});
  const Value e = b.apply(Op::kExp, b.apply(Op::kSubtract, x, b.apply(Op::kRowMax, x)));
  b.output(b.apply(Op::kDivide, e, b.apply(Op::kRowSum, e)), Format::kFp32, {8, 1});
  const LoopPlan softmax = plan(std::move(b).finish());
  EXPECT_EQ(softmax.sweeps, 3);
  ASSERT_EQ(softmax.kept.size(), 1U);
  EXPECT_EQ(softmax.kept[0].value, e.position);
  EXPECT_EQ(softmax.kept[0].sweep, 1);
  const auto last = slice_of(softmax, 2);
  EXPECT_TRUE(last[static_cast<size_t>(e.position)]);
  EXPECT_FALSE(last[static_cast<size_t>(x.position)]);
}

TEST(LoopPlan, BlocksOfColumnSumsDependOnlyOnRows) {
  for (const int64_t rows : {1, 15, 16, 1000, 1025, 100'000}) {
    LoopBuilder b({rows, 8}, 1);
    b.output(b.apply(Op::kColumnSum, b.input(Format::kFp32, {8, 1})), Format::kFp32, {0, 1});
    const LoopPlan sums = plan(std::move(b).finish());
    EXPECT_LE((rows + sums.block_rows - 1) / sums.block_rows, 64) << rows;
    EXPECT_TRUE(sums.block_rows == rows || sums.block_rows % 16 == 0) << rows;
  }
}

}  // namespace
}  // namespace gallop::compile
