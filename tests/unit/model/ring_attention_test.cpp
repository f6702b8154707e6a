// Attention whose keys and values pass around a ring of processes, next to attention in one
// process.
#include "gallop/model/functional/ring_attention.h"

#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/zigzag.h"

namespace gallop::model::functional {
namespace {

// What has been sent, by the rank that it is for and the number of the shift.
class Mailboxes {
 public:
  void put(int rank, int64_t number, const at::Tensor& tensor) {
    const std::lock_guard lock(mutex_);
    tensors_[{rank, number}] = tensor.clone();
    changed_.notify_all();
  }
  at::Tensor take(int rank, int64_t number) {
    std::unique_lock lock(mutex_);
    const std::pair place{rank, number};
    changed_.wait(lock, [&] { return tensors_.contains(place); });
    const at::Tensor tensor = tensors_[place];
    tensors_.erase(place);
    return tensor;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, int64_t>, at::Tensor> tensors_;
};

// A thread as one of several processes. A tensor is sent when its shift starts or, as drawn, as
// late as when it is waited for, and arrives when it is waited for. Until then the memory for it
// has no numbers, so that it is seen if tensors in flight are written or read.
class ThreadGroup final : public TensorGroup {
 public:
  ThreadGroup(int rank, int size, Mailboxes& mailboxes)
      : rank_(rank), size_(size), mailboxes_(mailboxes), random_(static_cast<uint32_t>(rank)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  bool sequence_parallel() const override { return false; }
  const std::vector<std::string>& tp_plan() const override { return tp_plan_; }
  void all_reduce(const at::Tensor&) const override { fail(); }
  void all_gather(const at::Tensor&, c10::IntArrayRef) const override { fail(); }
  void all_to_all(const at::Tensor&, const at::Tensor&, c10::IntArrayRef,
                  c10::IntArrayRef) const override {
    fail();
  }

  void shift_async(const at::Tensor& output, const at::Tensor& input) const override {
    EXPECT_TRUE(output.is_contiguous() && input.is_contiguous());
    output.fill_(std::numeric_limits<double>::quiet_NaN());
    const Shift shift{.number = started_++, .is_sent = random_() % 2 == 0};
    if (shift.is_sent) send(shift, input);
    shifts_[output.unsafeGetTensorImpl()] = shift;
  }
  void wait_shift(const at::Tensor& output, const at::Tensor& input) const override {
    const Shift shift = shifts_.at(output.unsafeGetTensorImpl());
    shifts_.erase(output.unsafeGetTensorImpl());
    if (!shift.is_sent) send(shift, input);
    const at::Tensor received = mailboxes_.take(rank_, shift.number);
    ASSERT_EQ(received.sizes(), output.sizes());
    ASSERT_EQ(received.scalar_type(), output.scalar_type());
    output.copy_(received);
    elements_ += input.numel();
  }

  // Sent so far.
  int64_t elements() const { return elements_; }
  bool has_waited_for_all() const { return shifts_.empty(); }

 private:
  struct Shift {
    int64_t number = 0;
    bool is_sent = false;
  };

  [[noreturn]] static void fail() { throw InternalError("ring attention: a call of another kind"); }
  void send(const Shift& shift, const at::Tensor& input) const {
    mailboxes_.put((rank_ + 1) % size_, shift.number, input);
  }

  int rank_, size_;
  std::vector<std::string> tp_plan_;
  Mailboxes& mailboxes_;
  mutable std::mt19937 random_;
  mutable int64_t started_ = 0, elements_ = 0;
  mutable std::map<const at::TensorImpl*, Shift> shifts_;  // By what they receive.
};

struct Tensors {
  at::Tensor query, key, value, y, dy;
};

constexpr int64_t kBatch = 2, kHeads = 3, kWidth = 4;
constexpr double kScale = 0.7;

Tensors random_inputs(int64_t tokens, at::ScalarType type) {
  at::manual_seed(1);
  const auto random = [&] {
    return at::rand({kBatch, tokens, kHeads, kWidth}, type).sub_(0.5).mul_(4).transpose(1, 2);
  };
  return {.query = random(), .key = random(), .value = random(), .y = {}, .dy = random()};
}

// In fp64, by the definition.
at::Tensor plain_attention(const Tensors& x, const RingAttentionOptions& options) {
  at::Tensor hidden = at::zeros({1, 1, options.tokens, options.tokens}, at::kBool);
  if (options.causal) hidden = at::ones_like(hidden).triu(1);
  if (options.position_ids_BT.defined()) {
    const at::Tensor begins = at::arange(options.tokens) - options.position_ids_BT;
    hidden = hidden.logical_or(begins.unsqueeze(2).ne(begins.unsqueeze(1)).unsqueeze(1));
  }
  const at::Tensor scores = at::matmul(x.query, x.key.transpose(2, 3)).mul(options.scale);
  return at::matmul(
      at::softmax(scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()), 3),
      x.value);
}

template <typename Attention>
Tensors with_gradients(Tensors x, const Attention& attention) {
  for (at::Tensor* one : {&x.query, &x.key, &x.value}) {
    *one = one->detach().requires_grad_(true);
  }
  x.y = attention(x);
  torch::autograd::backward({x.y}, {x.dy});
  return {.query = x.query.grad(), .key = x.key.grad(), .value = x.value.grad(), .y = x.y.detach()};
}

struct RingCase {
  int processes;
  int64_t tokens;
  bool causal = true;
  at::Tensor position_ids_BT{};
  at::ScalarType type = at::kDouble;
  double tolerance = 1e-12;
};

void expect_near_plain_attention(const RingCase& tested) {
  SCOPED_TRACE(std::to_string(tested.processes) + " processes, " + std::to_string(tested.tokens) +
               " tokens");
  const RingAttentionOptions options{.tokens = tested.tokens,
                                     .causal = tested.causal,
                                     .scale = kScale,
                                     .position_ids_BT = tested.position_ids_BT};
  const Tensors x = random_inputs(tested.tokens, tested.type);
  const auto in_fp64 = [](const at::Tensor& one) { return one.to(at::kDouble); };
  const Tensors wanted =
      with_gradients({in_fp64(x.query), in_fp64(x.key), in_fp64(x.value), {}, in_fp64(x.dy)},
                     [&](const Tensors& all) { return plain_attention(all, options); });

  const Zigzag zigzag(tested.tokens, tested.processes);
  Mailboxes mailboxes;
  std::vector<Tensors> results(static_cast<size_t>(tested.processes));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < tested.processes; ++rank) {
    threads.emplace_back([&, rank] {
      const ThreadGroup group(rank, tested.processes, mailboxes);
      const at::Tensor positions = zigzag.positions_of(rank);
      const auto own = [&](const at::Tensor& one) { return one.index_select(2, positions); };
      results[static_cast<size_t>(rank)] = with_gradients(
          {own(x.query), own(x.key), own(x.value), {}, own(x.dy)}, [&](const Tensors& mine) {
            return ring_attention(mine.query, mine.key, mine.value, options, group);
          });
      EXPECT_TRUE(group.has_waited_for_all());
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (int rank = 0; rank < tested.processes; ++rank) {
    const Tensors& got = results[static_cast<size_t>(rank)];
    const auto error = [&](const at::Tensor& one, const at::Tensor& of) {
      if (one.numel() == 0) return 0.0;
      return one.to(at::kDouble)
          .sub(of.index_select(2, zigzag.positions_of(rank)))
          .abs()
          .max()
          .item<double>();
    };
    EXPECT_EQ(got.y.scalar_type(), tested.type);
    EXPECT_LE(error(got.y, wanted.y), tested.tolerance) << rank;
    EXPECT_LE(error(got.query, wanted.query), tested.tolerance) << rank;
    EXPECT_LE(error(got.key, wanted.key), tested.tolerance) << rank;
    EXPECT_LE(error(got.value, wanted.value), tested.tolerance) << rank;
  }
}

TEST(Zigzag, GivesEachRankAnEarlyAndALateChunk) {
  const Zigzag even(12, 3);
  EXPECT_TRUE(at::equal(even.positions_of(0), at::tensor({0, 1, 10, 11}, at::kLong)));
  EXPECT_TRUE(at::equal(even.positions_of(1), at::tensor({2, 3, 8, 9}, at::kLong)));
  EXPECT_TRUE(at::equal(even.positions_of(2), at::tensor({4, 5, 6, 7}, at::kLong)));
}

TEST(Zigzag, DividesAnyNumberOfTokens) {
  for (int processes = 1; processes <= 5; ++processes) {
    for (int64_t tokens = 0; tokens <= 25; ++tokens) {
      const Zigzag zigzag(tokens, processes);
      std::vector<at::Tensor> all;
      for (int rank = 0; rank < processes; ++rank) {
        all.push_back(zigzag.positions_of(rank));
        EXPECT_EQ(all.back().size(0), zigzag.tokens_of(rank));
        EXPECT_LE(std::abs(zigzag.early(rank).size() - zigzag.late(rank).size()), 1);
      }
      EXPECT_TRUE(at::equal(std::get<0>(at::cat(all).sort()), at::arange(tokens)));
    }
  }
}

// Pairs of queries and keys.
TEST(Zigzag, BalancesCausalAttention) {
  for (const int processes : {2, 3, 4, 8}) {
    const Zigzag zigzag(int64_t{16} * processes, processes);
    for (int rank = 0; rank < processes; ++rank) {
      EXPECT_EQ(zigzag.positions_of(rank).sum().item<int64_t>(),
                zigzag.positions_of(0).sum().item<int64_t>());
    }
  }
}

TEST(RingAttention, IsThatOfOneProcess) {
  for (const int processes : {1, 2, 3, 4}) {
    for (int64_t chunk = 1; chunk <= 7; ++chunk) {
      for (const bool causal : {true, false}) {
        expect_near_plain_attention(
            {.processes = processes, .tokens = 2 * processes * chunk, .causal = causal});
      }
    }
  }
}

TEST(RingAttention, DividesAnyNumberOfTokens) {
  for (const int processes : {2, 3, 4}) {
    for (const int64_t tokens : {1, 2, 5, 7, 11, 13, 29}) {
      for (const bool causal : {true, false}) {
        expect_near_plain_attention({.processes = processes, .tokens = tokens, .causal = causal});
      }
    }
  }
}

// Documents that end within a chunk, that span several, and of single tokens; short ones, of which
// none has tokens in all processes.
TEST(RingAttention, KeepsDocumentsApart) {
  const at::Tensor fours = at::arange(24).remainder(4);
  const at::Tensor one = at::cat({at::arange(5), at::arange(1), at::arange(11), at::arange(7)});
  const at::Tensor other = at::cat({at::arange(2), at::arange(22)});
  for (const int processes : {2, 3, 4}) {
    for (const bool causal : {true, false}) {
      expect_near_plain_attention({.processes = processes,
                                   .tokens = 24,
                                   .causal = causal,
                                   .position_ids_BT = at::stack({one, other})});
      expect_near_plain_attention({.processes = processes,
                                   .tokens = 24,
                                   .causal = causal,
                                   .position_ids_BT = at::stack({fours, fours})});
    }
  }
}

TEST(RingAttention, ComputesInFp32AndBf16) {
  for (const int processes : {2, 3}) {
    expect_near_plain_attention(
        {.processes = processes, .tokens = 100, .type = at::kFloat, .tolerance = 1e-5});
    expect_near_plain_attention(
        {.processes = processes, .tokens = 100, .type = at::kBFloat16, .tolerance = 0.06});
  }
}

// (N - 1) times keys and values in the forward pass; as much in the backward pass, and N times
// their gradients.
TEST(RingAttention, SendsKeysAndValuesOnce) {
  constexpr int kProcesses = 4;
  constexpr int64_t kTokens = 16, kOwn = 2 * kBatch * kTokens / kProcesses * kHeads * kWidth;
  Mailboxes mailboxes;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kProcesses; ++rank) {
    threads.emplace_back([&, rank] {
      const ThreadGroup group(rank, kProcesses, mailboxes);
      with_gradients(random_inputs(kTokens / kProcesses, at::kFloat), [&](const Tensors& x) {
        const at::Tensor y = ring_attention(
            x.query, x.key, x.value, {.tokens = kTokens, .causal = true, .scale = kScale}, group);
        EXPECT_EQ(group.elements(), (kProcesses - 1) * kOwn);
        return y;
      });
      EXPECT_EQ(group.elements(), (2 * (kProcesses - 1) + kProcesses) * kOwn);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gallop::model::functional
