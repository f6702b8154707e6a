#include "gallop/parallel/sums.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/kernel/barrier.h"
#include "gallop/kernel/operator.h"
#include "gallop/tensor/page_tensor.h"

namespace gallop::parallel {

namespace {

thread_local CollectivesScope* current_scope = nullptr;

CollectivesScope& needed() {
  if (current_scope == nullptr) throw InternalError("a collective without other processes");
  return *current_scope;
}

}  // namespace

// The operators, which have no effect in a dry run.
struct CollectiveOperators {
  // The name of the group in which the current scopes start collectives. The operators have it as
  // an argument, because a compiled step replays them without the scopes of subgroups.
  static std::string_view group() { return needed().group_->name(); }

  // `function` starts a collective that is waited for by this tensor.
  template <typename Function>
  static void start(const at::Tensor& tensor, std::string_view group, const Function& function) {
    if (kernel::is_recorded()) return;
    CollectivesScope& scope = needed();
    Collectives& processes = scope.all_->group(std::string(group));
    function(processes);
    scope.calls_.push_back({.tensor = tensor, .group = &processes});
  }

  static void all_reduce(const at::Tensor& tensor, std::string_view group) {
    start(tensor, group, [&](Collectives& all) { all.all_reduce_async(tensor); });
  }
  static void all_to_all(const at::Tensor& output, const at::Tensor& input,
                         c10::IntArrayRef receive, c10::IntArrayRef send, std::string_view group) {
    start(output, group,
          [&](Collectives& all) { all.all_to_all_async(output, input, receive, send); });
  }
  static void all_gather(const at::Tensor& tensor, c10::IntArrayRef sizes,
                         const std::optional<at::Tensor>& /*after*/, std::string_view group) {
    start(tensor, group, [&](Collectives& all) { all.all_gather_async(tensor, sizes); });
  }
  static void release(const at::Tensor& tensor, int64_t begin, int64_t end) {
    if (kernel::is_recorded()) return;
    release_pages_of(tensor, 0, begin);
    release_pages_of(tensor, end, tensor.numel());
  }
  static void send(const at::Tensor& tensor, int64_t to, std::string_view group) {
    start(tensor, group, [&](Collectives& all) { all.send_async(tensor, static_cast<int>(to)); });
  }
  static void recv(const at::Tensor& tensor, int64_t from, std::string_view group) {
    start(tensor, group, [&](Collectives& all) { all.recv_async(tensor, static_cast<int>(from)); });
  }

  static void wait(const at::Tensor& tensor) {
    if (kernel::is_recorded()) return;
    CollectivesScope& scope = needed();
    auto& calls = scope.calls_;
    const auto found = std::find_if(calls.rbegin(), calls.rend(), [&](const auto& call) {
      return !call.is_done && call.tensor.const_data_ptr() == tensor.const_data_ptr();
    });
    (found != calls.rend() ? found->group : scope.group_)->wait(tensor);
    if (found == calls.rend()) return;
    found->is_done = true;
    found->tensor.reset();
  }

  static void require(const at::Tensor& sums, int64_t index) {
    if (kernel::is_recorded()) return;
    const at::Tensor numbers = sums.cpu();
    needed().group_->check();
    if (numbers.const_data_ptr<double>()[index] != 0) throw PeerFailed();
  }
};

CollectivesScope::CollectivesScope(Collectives& collectives)
    : all_(&collectives), group_(&collectives), outer_(current_scope) {
  current_scope = this;
}

CollectivesScope::~CollectivesScope() { current_scope = outer_; }

Collectives* CollectivesScope::current() {
  return current_scope != nullptr ? current_scope->group_ : nullptr;
}

SubgroupScope::SubgroupScope(Collectives& group) : scope_(current_scope) {
  if (scope_ == nullptr) return;
  if (&scope_->all_->group(group.name()) != &group) {
    throw InternalError("collectives: the group is not part of that of the scope");
  }
  before_ = std::exchange(scope_->group_, &group);
}

SubgroupScope::~SubgroupScope() {
  if (scope_ != nullptr) scope_->group_ = before_;
}

std::vector<PendingCollective> all_reduces_of(const std::vector<at::Tensor>& tensors) {
  std::vector<PendingCollective> all;
  for (const at::Tensor& tensor : tensors) all.push_back({.tensor = tensor});
  return all;
}

void CollectivesScope::drain(const std::vector<PendingCollective>& remaining) {
  for (Call& call : calls_) {
    if (!call.is_done) call.group->wait(call.tensor);
  }
  calls_.clear();
  for (const PendingCollective& one : remaining) {
    const auto zeros = [&](int64_t count) {
      return at::zeros({std::max<int64_t>(1, count)}, one.tensor.options().requires_grad(false));
    };
    const at::Tensor nothing = zeros(one.tensor.numel());
    if (one.kind == PendingCollective::Kind::kAllReduce) {
      group_->all_reduce_async(nothing);
      group_->wait(nothing);
      continue;
    }
    if (one.kind == PendingCollective::Kind::kAllGather) {
      group_->all_gather_async(nothing, one.receive);
      group_->wait(nothing);
      continue;
    }
    const at::Tensor received =
        zeros(std::accumulate(one.receive.begin(), one.receive.end(), int64_t{0}));
    group_->all_to_all_async(received, nothing, one.receive, one.send);
    group_->wait(received);
  }
}

void all_reduce_async(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&, std::string_view> kStart(
      "all_reduce_async(Tensor(a!) tensor, str group) -> ()", CollectiveOperators::all_reduce,
      nullptr, CollectiveOperators::all_reduce);
  kStart(tensor, CollectiveOperators::group());
}

void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                      c10::IntArrayRef send) {
  static const kernel::Operator<void, const at::Tensor&, const at::Tensor&, c10::IntArrayRef,
                                c10::IntArrayRef, std::string_view>
      kStart(
          "all_to_all_async(Tensor(a!) output, Tensor input, int[] receive, int[] send, str group) "
          "-> ()",
          CollectiveOperators::all_to_all, nullptr, CollectiveOperators::all_to_all);
  kStart(output, input, receive, send, CollectiveOperators::group());
}

void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes) {
  all_gather_async(tensor, sizes, {});
}

void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes, const at::Tensor& after) {
  static const kernel::Operator<void, const at::Tensor&, c10::IntArrayRef,
                                const std::optional<at::Tensor>&, std::string_view>
      kStart("all_gather_async(Tensor(a!) tensor, int[] sizes, Tensor? after, str group) -> ()",
             CollectiveOperators::all_gather, nullptr, CollectiveOperators::all_gather);
  kStart(tensor, sizes, kernel::optional(after), CollectiveOperators::group());
}

void release_pages(const at::Tensor& tensor, int64_t begin, int64_t end) {
  static const kernel::Operator<void, const at::Tensor&, int64_t, int64_t> kRelease(
      "release_pages(Tensor(a!) tensor, int begin, int end) -> ()", CollectiveOperators::release);
  kRelease(tensor, begin, end);
}

// A tensor in flight counts as written, so that nothing changes it before the wait.
void send_async(const at::Tensor& tensor, int to) {
  static const kernel::Operator<void, const at::Tensor&, int64_t, std::string_view> kStart(
      "send_async(Tensor(a!) tensor, int to, str group) -> ()", CollectiveOperators::send, nullptr,
      CollectiveOperators::send);
  kStart(tensor, to, CollectiveOperators::group());
}

void recv_async(const at::Tensor& tensor, int from) {
  static const kernel::Operator<void, const at::Tensor&, int64_t, std::string_view> kStart(
      "recv_async(Tensor(a!) tensor, int from, str group) -> ()", CollectiveOperators::recv,
      nullptr, CollectiveOperators::recv);
  kStart(tensor, from, CollectiveOperators::group());
}

void wait_tensor(const at::Tensor& tensor) {
  static const kernel::Operator<void, const at::Tensor&> kWait(
      "wait_tensor(Tensor(a!) tensor) -> ()", CollectiveOperators::wait, nullptr,
      CollectiveOperators::wait);
  kWait(tensor);
}

void require_all_done(const at::Tensor& sums, int64_t index) {
  static const kernel::Operator<void, const at::Tensor&, int64_t> kRequire(
      "require_all_done(Tensor(a!) sums, int index) -> ()", CollectiveOperators::require, nullptr,
      CollectiveOperators::require);
  kRequire(sums, index);
}

}  // namespace gallop::parallel
