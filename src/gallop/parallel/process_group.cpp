#include "gallop/parallel/process_group.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/launch/world.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/launched_group.h"
#include "gallop/parallel/rank_order_sums.h"

namespace gallop {

namespace {

void require(bool holds, const char* call, const std::string& rule) {
  if (!holds) throw UsageError(fmt::format("{}: {}", call, rule));
}

// Collectives::wait() identifies a pending call by the memory of its tensor, which must exist.
void require_tensor(const char* call, const char* name, const at::Tensor& tensor) {
  require(tensor.defined() && tensor.numel() > 0, call, fmt::format("{} has no elements", name));
  require(tensor.is_contiguous(), call, fmt::format("{} is not contiguous", name));
}

void require_pair(const char* call, const at::Tensor& output, const at::Tensor& input) {
  require_tensor(call, "output", output);
  require_tensor(call, "input", input);
  require(output.scalar_type() == input.scalar_type(), call,
          fmt::format("output is of type {}, but input of type {}",
                      c10::toString(output.scalar_type()), c10::toString(input.scalar_type())));
}

// Without autograd.
at::Tensor flat(const at::Tensor& tensor) { return tensor.detach().reshape({-1}); }

// The larger one consists of a part of the size of the other for each process.
void require_parts(const char* call, const char* larger_name, const at::Tensor& larger,
                   const char* part_name, const at::Tensor& part, int processes) {
  require(
      larger.numel() == part.numel() * processes, call,
      fmt::format("{} has {} elements, but {} of {} processes has {}: it needs {}", larger_name,
                  larger.numel(), part_name, processes, part.numel(), part.numel() * processes));
}

// Elements of slices along the first dimension; of equal ones if there are no sizes.
std::vector<int64_t> elements_of(const char* name, const at::Tensor& tensor,
                                 std::vector<int64_t> sizes, int processes) {
  constexpr const char* kCall = "all_to_all";
  require(tensor.dim() > 0, kCall,
          fmt::format("{} has no dimension along which to divide it", name));
  const int64_t rows = tensor.size(0);
  if (sizes.empty()) {
    require(rows % processes == 0, kCall,
            fmt::format("{} processes do not divide the {} rows of {}; give the sizes of the parts",
                        processes, rows, name));
    sizes.assign(static_cast<size_t>(processes), rows / processes);
  }
  require(static_cast<int>(sizes.size()) == processes, kCall,
          fmt::format("{} sizes for {} in {} processes", sizes.size(), name, processes));
  require(std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) == rows &&
              *std::min_element(sizes.begin(), sizes.end()) >= 0,
          kCall, fmt::format("{} has {} rows, which {} do not add up to", name, rows, sizes));
  for (int64_t& size : sizes) size *= tensor.numel() / rows;
  return sizes;
}

}  // namespace

Work::Work(std::shared_ptr<parallel::Collectives> collectives, at::Tensor waited)
    : collectives_(std::move(collectives)), waited_(std::move(waited)) {}

void Work::wait() {
  if (!waited_.defined()) return;
  const at::Tensor waited = std::exchange(waited_, {});
  collectives_->wait(waited);
}

ProcessGroup::ProcessGroup(std::shared_ptr<parallel::Collectives> collectives)
    : collectives_(std::move(collectives)) {}

int ProcessGroup::rank() const { return collectives_->rank(); }

int ProcessGroup::size() const { return collectives_->size(); }

void ProcessGroup::require_rank(const char* call, int rank) const {
  require(rank >= 0 && rank < size(), call,
          fmt::format("there is no rank {} in a group of {} processes", rank, size()));
}

Work ProcessGroup::all_reduce_async(const at::Tensor& tensor) const {
  require_tensor("all_reduce", "the tensor", tensor);
  const at::Tensor data = tensor.detach();
  collectives_->all_reduce_async(data);
  return {collectives_, data};
}

void ProcessGroup::all_reduce(const at::Tensor& tensor) const { all_reduce_async(tensor).wait(); }

void ProcessGroup::reduce_scatter(const at::Tensor& output, const at::Tensor& input) const {
  constexpr const char* kCall = "reduce_scatter";
  require_pair(kCall, output, input);
  require_parts(kCall, "input", input, "output", output, size());
  const at::Tensor sent = flat(input), received = at::empty_like(sent);
  const std::vector<int64_t> sizes(static_cast<size_t>(size()), output.numel());
  collectives_->all_to_all_async(received, sent, sizes, sizes);
  collectives_->wait(received);
  parallel::sum_in_rank_order(flat(output), received);
}

void ProcessGroup::all_gather(const at::Tensor& output, const at::Tensor& input) const {
  constexpr const char* kCall = "all_gather";
  require_pair(kCall, output, input);
  require_parts(kCall, "output", output, "input", input, size());
  const at::Tensor all = flat(output);
  all.reshape({size(), -1}).select(0, rank()).copy_(flat(input));
  collectives_->all_gather_async(all,
                                 std::vector<int64_t>(static_cast<size_t>(size()), input.numel()));
  collectives_->wait(all);
}

void ProcessGroup::all_to_all(const at::Tensor& output, const at::Tensor& input,
                              const std::vector<int64_t>& output_sizes,
                              const std::vector<int64_t>& input_sizes) const {
  require_pair("all_to_all", output, input);
  const std::vector<int64_t> receive = elements_of("output", output, output_sizes, size()),
                             send = elements_of("input", input, input_sizes, size());
  const at::Tensor received = flat(output);
  collectives_->all_to_all_async(received, flat(input), receive, send);
  collectives_->wait(received);
}

// An all-gather to which rank `src` alone contributes.
void ProcessGroup::broadcast(const at::Tensor& tensor, int src) const {
  require_tensor("broadcast", "the tensor", tensor);
  require_rank("broadcast", src);
  const at::Tensor data = tensor.detach();
  if (src == 0) return collectives_->broadcast(data);
  std::vector<int64_t> sizes(static_cast<size_t>(size()), 0);
  sizes[static_cast<size_t>(src)] = data.numel();
  collectives_->all_gather_async(data, sizes);
  collectives_->wait(data);
}

// With a copy, one tensor may be on its way to several ranks: a pending call is identified by the
// memory of its tensor.
Work ProcessGroup::start_send(const at::Tensor& tensor, int dst, bool copies) const {
  require_tensor("send", "the tensor", tensor);
  require_rank("send", dst);
  require(dst != rank(), "send", fmt::format("rank {} would send to itself", dst));
  const at::Tensor data = copies ? tensor.detach().clone() : tensor.detach();
  collectives_->send_async(data, dst);
  return {collectives_, data};
}

Work ProcessGroup::send_async(const at::Tensor& tensor, int dst) const {
  return start_send(tensor, dst, /*copies=*/true);
}

Work ProcessGroup::recv_async(const at::Tensor& tensor, int src) const {
  require_tensor("recv", "the tensor", tensor);
  require_rank("recv", src);
  require(src != rank(), "recv", fmt::format("rank {} would receive from itself", src));
  const at::Tensor data = tensor.detach();
  collectives_->recv_async(data, src);
  return {collectives_, data};
}

void ProcessGroup::send(const at::Tensor& tensor, int dst) const {
  start_send(tensor, dst, /*copies=*/false).wait();
}

void ProcessGroup::recv(const at::Tensor& tensor, int src) const { recv_async(tensor, src).wait(); }

void ProcessGroup::barrier() const { all_reduce(at::zeros({1})); }

ProcessGroup ProcessGroup::subgroup(const std::vector<int>& ranks, const std::string& name) const {
  constexpr const char* kCall = "subgroup";
  for (const int one : ranks) require_rank(kCall, one);
  require(std::set<int>(ranks.begin(), ranks.end()).size() == ranks.size(), kCall,
          fmt::format("a rank is listed twice in {}", ranks));
  require(std::find(ranks.begin(), ranks.end(), rank()) != ranks.end(), kCall,
          fmt::format("this process, rank {}, is not among {}", rank(), ranks));
  // Subgroups use this group, which therefore lives as long as they.
  return ProcessGroup({collectives_->subgroup(ranks, name).release(),
                       [parent = collectives_](parallel::Collectives* own) {
                         std::default_delete<parallel::Collectives>()(own);
                       }});
}

ProcessGroup init_process_group(double timeout) {
  require(timeout > 0, "init_process_group", fmt::format("the timeout is {} seconds", timeout));
  const launch::World world = launch::read_world(launch::process_environment());
  if (world.size == 1) return ProcessGroup(parallel::single_process_group());
  return ProcessGroup(parallel::join_launched_group(world, {.start = timeout}));
}

}  // namespace gallop
