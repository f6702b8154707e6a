#include "gallop/parallel/process_group.h"

#include <cstdlib>
#include <functional>
#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/parallel/ranks_together.h"

namespace gallop {

namespace {

void run_group(int size, const std::function<void(const ProcessGroup&)>& function) {
  parallel::run_ranks_together(size, [&](parallel::Collectives& collectives) {
    function(ProcessGroup({&collectives, [](parallel::Collectives*) {}}));
  });
}

at::Tensor numbers(int64_t begin, int64_t end) { return at::arange(begin, end, at::kDouble); }

// The message of the UsageError that a call throws.
std::string mistake(const std::function<void()>& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// Four processes, with another value in each.
TEST(ProcessGroup, HasTheOperationsOfTorchDistributed) {
  run_group(4, [](const ProcessGroup& group) {
    const int64_t rank = group.rank();
    const at::Tensor sum = numbers(rank, rank + 3);
    group.all_reduce(sum);
    EXPECT_TRUE(at::equal(sum, 4 * numbers(0, 3) + 6));

    const at::Tensor part = at::zeros({2}, at::kDouble);
    group.reduce_scatter(part, numbers(0, 8) * (rank + 1));
    EXPECT_TRUE(at::equal(part, 10 * numbers(2 * rank, 2 * rank + 2)));

    const at::Tensor all = at::zeros({4, 2}, at::kDouble);
    group.all_gather(all, numbers(2 * rank, 2 * rank + 2));
    EXPECT_TRUE(at::equal(all, numbers(0, 8).reshape({4, 2})));

    const at::Tensor received = at::zeros({4, 3}, at::kDouble);
    group.all_to_all(received, at::full({4, 3}, 10.0 * static_cast<double>(rank), at::kDouble) +
                                   numbers(0, 4).unsqueeze(1));
    EXPECT_TRUE(at::equal(received.select(1, 2), 10 * numbers(0, 4) + rank));

    for (int src = 0; src < 4; ++src) {
      const at::Tensor tensor = numbers(rank, rank + 5);
      group.broadcast(tensor, src);
      EXPECT_TRUE(at::equal(tensor, numbers(src, src + 5)));
    }
    group.barrier();
  });
}

TEST(ProcessGroup, ExchangesPartsOfAnySizeAlongTheFirstDimension) {
  run_group(2, [](const ProcessGroup& group) {
    // Rank 0 keeps two rows and sends one, rank 1 sends three and keeps none.
    const bool is_first = group.rank() == 0;
    const at::Tensor input = numbers(0, 6).reshape({3, 2}) + (is_first ? 0 : 100);
    const at::Tensor output = at::zeros({is_first ? 5 : 1, 2}, at::kDouble);
    using Sizes = std::vector<int64_t>;
    group.all_to_all(output, input, is_first ? Sizes{2, 3} : Sizes{1, 0},
                     is_first ? Sizes{2, 1} : Sizes{3, 0});
    const at::Tensor first = numbers(0, 6).reshape({3, 2});
    EXPECT_TRUE(at::equal(
        output, is_first ? at::cat({first.narrow(0, 0, 2), first + 100}) : first.narrow(0, 2, 1)));
  });
}

// Both send before either receives, and send one tensor twice.
TEST(ProcessGroup, SendsWithoutWaiting) {
  run_group(2, [](const ProcessGroup& group) {
    const int other = 1 - group.rank();
    const at::Tensor own = at::full({1000}, group.rank(), at::kDouble);
    Work first = group.send_async(own, other), second = group.send_async(own, other);
    own.fill_(7);  // What is sent is what it was.
    const at::Tensor got = at::zeros({1000}, at::kDouble), again = at::zeros({1000}, at::kDouble);
    group.recv(got, other);
    Work late = group.recv_async(again, other);
    for (Work* work : {&first, &second, &late, &late}) work->wait();
    EXPECT_TRUE(at::equal(got, at::full({1000}, other, at::kDouble)));
    EXPECT_TRUE(at::equal(again, got));
  });
}

// In bf16, 1 + 2^-8 would be 1 after each addition.
TEST(ProcessGroup, ScattersSumsOfNarrowTypesThatAreRoundedOnce) {
  run_group(4, [](const ProcessGroup& group) {
    const at::Tensor input = at::full({4}, group.rank() == 0 ? 1 : 0x1p-8, at::kBFloat16);
    const at::Tensor output = at::zeros({1}, at::kBFloat16);
    group.reduce_scatter(output, input);
    EXPECT_EQ(output.to(at::kDouble).data_ptr<double>()[0], 1 + 0x1p-6);
  });
}

// A grid of two by two.
TEST(ProcessGroup, IsDividedIntoSubgroups) {
  run_group(4, [](const ProcessGroup& group) {
    const int rank = group.rank(), row = rank / 2, column = rank % 2;
    const ProcessGroup tp = group.subgroup({2 * row, 2 * row + 1}, "tp");
    const ProcessGroup dp = group.subgroup({column, column + 2}, "dp");
    EXPECT_EQ(tp.rank(), column);
    EXPECT_EQ(dp.rank(), row);
    const at::Tensor along_row = at::full({1}, rank, at::kDouble), along_column = along_row.clone();
    tp.all_reduce(along_row);
    dp.all_reduce(along_column);
    EXPECT_EQ(along_row.item<double>(), 4 * row + 1);
    EXPECT_EQ(along_column.item<double>(), 2 * column + 2);
    // A group of one process, and a group of a group that is gone.
    const ProcessGroup alone = group.subgroup({0, 1, 2, 3}, "all").subgroup({rank}, "alone");
    alone.all_reduce(along_row);
    EXPECT_EQ(along_row.item<double>(), 4 * row + 1);
    EXPECT_EQ(alone.size(), 1);
    group.barrier();
  });
}

TEST(ProcessGroup, RejectsWrongArguments) {
  run_group(2, [](const ProcessGroup& group) {
    const at::Tensor two = at::zeros({2}), three = at::zeros({3});
    const int other = 1 - group.rank();
    EXPECT_EQ(mistake([&] {
                group.all_reduce(at::zeros({2, 3}).t());
              }),
              "all_reduce: the tensor is not contiguous");
    EXPECT_EQ(mistake([&] { group.all_gather(three, two); }),
              "all_gather: output has 3 elements, but input of 2 processes has 2: it needs 4");
    EXPECT_EQ(mistake([&] { group.reduce_scatter(two, two); }),
              "reduce_scatter: input has 2 elements, but output of 2 processes has 2: it needs 4");
    EXPECT_EQ(mistake([&] { group.all_gather(at::zeros({4}, at::kDouble), two); }),
              "all_gather: output is of type Double, but input of type Float");
    EXPECT_EQ(mistake([&] { group.all_to_all(two, three); }),
              "all_to_all: 2 processes do not divide the 3 rows of input; give the sizes of the "
              "parts");
    EXPECT_EQ(mistake([&] {
                group.all_to_all(two, three, {}, {1, 1});
              }),
              "all_to_all: input has 3 rows, which [1, 1] do not add up to");
    EXPECT_EQ(mistake([&] { group.broadcast(two, 2); }),
              "broadcast: there is no rank 2 in a group of 2 processes");
    EXPECT_NE(mistake([&] { group.send(two, group.rank()); }).find("would send to itself"),
              std::string::npos);
    EXPECT_NE(mistake([&] { group.subgroup({other}, "tp"); }).find("is not among"),
              std::string::npos);
    EXPECT_EQ(mistake([&] { group.recv(at::zeros({0}), other); }),
              "recv: the tensor has no elements");
    group.barrier();
  });
}

// Tests run as single processes.
TEST(ProcessGroup, OfAProcessThatNoLauncherHasStarted) {
  const ProcessGroup group = init_process_group();
  EXPECT_EQ(group.size(), 1);
  const at::Tensor tensor = numbers(0, 3), output = at::zeros({3}, at::kDouble);
  group.all_reduce(tensor);
  group.reduce_scatter(output, tensor);
  EXPECT_TRUE(at::equal(output, numbers(0, 3)));
  EXPECT_NE(mistake([&] { group.send(tensor, 1); }), "");
  EXPECT_EQ(mistake([] { init_process_group(0); }), "init_process_group: the timeout is 0 seconds");
  setenv("RANK", "1", 1);
  EXPECT_EQ(mistake([] { init_process_group(); }),
            "RANK is set, but WORLD_SIZE is not; set both or none");
  unsetenv("RANK");
}

}  // namespace

}  // namespace gallop
