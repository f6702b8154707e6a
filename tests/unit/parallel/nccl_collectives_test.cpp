#include "gallop/parallel/nccl_collectives.h"

#include <mutex>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives.h"
#include "unit/base/error_of.h"
#include "unit/parallel/collectives_contract.h"
#include "unit/parallel/fake_gpu.h"
#include "unit/parallel/ranks.h"

namespace gallop::parallel {

C10_REGISTER_GUARD_IMPL(CUDA, FakeGpus)

namespace {

RendezvousOptions with_gpus() {
  RendezvousOptions rendezvous;
  rendezvous.nccl = FakeNccl::functions();
  return rendezvous;
}

// Enqueues work on the current stream of that process.
void do_on_stream(const Collectives& collectives, std::function<void()> work) {
  FakeGpus::stream(static_cast<c10::DeviceIndex>(collectives.rank()), FakeGpus::kDefault)
      .push(std::move(work));
}

class NcclCollectivesOf : public testing::TestWithParam<int> {};

TEST_P(NcclCollectivesOf, AllReduceEveryDataType) {
  const int size = GetParam();
  for (const auto format :
       {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kByte}) {
    run_ranks(
        size,
        [&](Collectives& collectives) {
          const at::Tensor memory = at::full({1000}, collectives.rank() + 1, format);
          const at::Tensor tensor = on_gpu(memory, collectives.rank());
          collectives.all_reduce_async(tensor);
          collectives.wait(tensor);
          collectives.begin(Section::kEvaluation, 1);
          EXPECT_TRUE(at::equal(memory, at::full({1000}, size * (size + 1) / 2, format)));
        },
        with_gpus());
  }
}

TEST_P(NcclCollectivesOf, ExchangeParts) {
  run_ranks(
      GetParam(),
      [](Collectives& collectives) {
        const auto on = [&](const at::Tensor& tensor) {
          return on_gpu(tensor, collectives.rank());
        };
        expect_all_to_all(collectives, on);
        expect_all_gather(collectives, on);
        expect_send_and_recv(collectives, on);
      },
      with_gpus());
}

TEST_P(NcclCollectivesOf, AreOrderedWithTheStream) {
  run_ranks(
      GetParam(),
      [&](Collectives& collectives) {
        const at::Tensor memory = at::zeros({100});
        const at::Tensor tensor = on_gpu(memory, collectives.rank());
        // The stream starts only after everything was enqueued.
        FakeEvent all_enqueued, done;
        at::Tensor seen;
        do_on_stream(collectives, [&] {
          all_enqueued.wait();
          memory.fill_(1);
        });
        collectives.all_reduce_async(tensor);
        collectives.wait(tensor);
        do_on_stream(collectives, [&] {
          seen = memory.clone();
          done.set();
        });
        all_enqueued.set();
        done.wait();
        collectives.begin(Section::kEvaluation, 1);
        EXPECT_TRUE(at::equal(seen, at::full({100}, static_cast<float>(GetParam()))));
      },
      with_gpus());
}

TEST_P(NcclCollectivesOf, BroadcastFromRank0) {
  run_ranks(
      GetParam(),
      [&](Collectives& collectives) {
        const at::Tensor memory = at::arange(10).add(collectives.rank());
        collectives.broadcast(on_gpu(memory, collectives.rank()));
        // CPU tensors at the same time, and call numbers that count both.
        EXPECT_EQ(sum_over_all(collectives, {1.0}).front(), GetParam());
        collectives.begin(Section::kCheckpoint, 1);
        EXPECT_TRUE(at::equal(memory, at::arange(10)));
      },
      with_gpus());
}

INSTANTIATE_TEST_SUITE_P(Processes, NcclCollectivesOf, testing::Values(2, 3, 4),
                         testing::PrintToStringParamName());

// The errors of two processes that execute this.
std::vector<std::string> errors_of(const std::function<void(Collectives&)>& function,
                                   const RendezvousOptions& rendezvous = with_gpus()) {
  std::vector<std::string> errors(2);
  run_ranks(
      2,
      [&](Collectives& collectives) {
        try {
          function(collectives);
        } catch (const DeviceError& error) {
          errors[static_cast<size_t>(collectives.rank())] = error.what();
        }
      },
      rendezvous);
  return errors;
}

TEST(NcclCollectives, TimeOutIfAPeerDoesNotJoin) {
  RendezvousOptions rendezvous = with_gpus();
  rendezvous.limits.step = 0.2;
  FakeEvent may_leave;
  const at::Tensor memory = at::full({1000}, 1.0);
  const auto errors = errors_of(
      [&](Collectives& collectives) {
        const at::Tensor own = at::full({4}, 1.0);
        const at::Tensor tensor = on_gpu(own, collectives.rank());
        collectives.all_reduce_async(tensor);
        collectives.wait(tensor);
        collectives.begin(Section::kEvaluation, 2);
        collectives.begin(Section::kStep, 3);
        if (collectives.rank() == 1) return may_leave.wait();
        const at::Tensor lonely = on_gpu(memory, 0);
        collectives.all_reduce_async(lonely);
        collectives.wait(lonely);
        // The stream continues, and so do the threads that wait for it.
        FakeEvent done;
        do_on_stream(collectives, [&] { done.set(); });
        done.wait();
        may_leave.set();
        collectives.check();
      },
      rendezvous);
  EXPECT_EQ(errors[0],
            "rank 0 of 2: step 3, call 4, sum of 3.9 KiB: another process is gone or did not "
            "answer (not done after 0.20 s)");
  EXPECT_EQ(errors[1], "");
}

TEST(NcclCollectives, ReportNcclErrorsOfEarlierCalls) {
  const auto fail = [](Collectives& collectives) {
    collectives.begin(Section::kStep, 5);
    const at::Tensor one = at::full({2}, 1.0), two = at::full({300}, 1.0);
    for (const at::Tensor& memory : {one, two}) {
      const at::Tensor tensor = on_gpu(memory, collectives.rank());
      if (collectives.rank() == 0 && memory.numel() == 300) return;
      collectives.all_reduce_async(tensor);
      collectives.wait(tensor);
      collectives.begin(Section::kEvaluation, 5);
      collectives.begin(Section::kStep, 6);
    }
  };
  FakeNccl::state_later = FakeNccl::kRemoteError;
  const auto errors = errors_of(fail);
  FakeNccl::state_later = Nccl::kSuccess;
  EXPECT_EQ(errors[0], "");
  EXPECT_EQ(errors[1],
            "rank 1 of 2: step 6, call 4, sum of 1.2 KiB: another process is gone or did not "
            "answer (NCCL says: remote process exited)");
}

TEST(NcclCollectives, ReportStartUpErrors) {
  const auto start = [](Collectives& collectives) {
    const at::Tensor memory = at::full({2}, 1.0);
    collectives.all_reduce_async(on_gpu(memory, collectives.rank()));
  };
  FakeNccl::fails_to_make_id = true;
  const auto errors = errors_of(start);
  FakeNccl::fails_to_make_id = false;
  EXPECT_EQ(errors[0],
            "NCCL did not start in rank 0 of 2 on cuda:0: NCCL says: unhandled cuda error");
  EXPECT_EQ(errors[1], "NCCL did not start in rank 0");
}

TEST(NcclCollectives, RejectUnsupportedDataTypes) {
  const at::Tensor memory = at::zeros({2}, at::kInt);
  run_ranks(
      2,
      [&](Collectives& collectives) {
        EXPECT_THROW(collectives.all_reduce_async(on_gpu(memory, collectives.rank())),
                     InternalError);
      },
      with_gpus());
}

TEST(Nccl, ReportsAMissingLibrary) {
  const std::string missing = error_of([] { load_nccl("libnccl-that-is-not-there.so.2"); });
  EXPECT_NE(missing.find("libnccl-that-is-not-there.so.2"), std::string::npos) << missing;
  EXPECT_NE(missing.find("tools/fetch-libtorch --cuda"), std::string::npos) << missing;
  EXPECT_EQ(error_of([] { load_nccl("libc.so.6"); }),
            "libc.so.6 lacks ncclGetVersion: Gallop needs NCCL 2.18");
}

// The real library, if present: its version and enumerators agree with the declarations.
TEST(Nccl, OfThisMachineHasAllFunctions) {
  std::shared_ptr<const Nccl> nccl;
  try {
    nccl = load_nccl();
  } catch (const DeviceError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_STREQ(nccl->error_text(Nccl::kSuccess), "no error");
  EXPECT_STREQ(nccl->error_text(Nccl::kInProgress), "NCCL operation in progress");
}

}  // namespace
}  // namespace gallop::parallel
