#include "gallop/parallel/collectives_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "gallop/parallel/group_scope.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

namespace {

template <typename Start>
void run(Collectives& collectives, const at::Tensor& result, const Start& start) {
  if (result.numel() == 0) return;
  const GroupScope group(collectives);
  start();
  wait_tensor(result);
}

}  // namespace

void CollectivesGroup::all_reduce(const at::Tensor& tensor) const {
  run(collectives_, tensor, [&] { all_reduce_async(tensor); });
}

void CollectivesGroup::all_gather(const at::Tensor& tensor, c10::IntArrayRef sizes) const {
  run(collectives_, tensor, [&] { all_gather_async(tensor, sizes); });
}

void CollectivesGroup::all_to_all(const at::Tensor& output, const at::Tensor& input,
                                  c10::IntArrayRef receive, c10::IntArrayRef send) const {
  // A process that neither sends nor receives takes part in those of the others, and needs memory.
  const at::Tensor received = output.numel() > 0 ? output : at::empty({1}, output.options());
  const at::Tensor sent = input.numel() > 0 ? input : at::zeros({1}, input.options());
  run(collectives_, received, [&] { all_to_all_async(received, sent, receive, send); });
}

// Both ends of a transfer know its size, so what is empty is not sent.
void CollectivesGroup::shift_async(const at::Tensor& output, const at::Tensor& input) const {
  const GroupScope group(collectives_);
  if (input.numel() > 0) send_async(input, (rank() + 1) % size());
  if (output.numel() > 0) recv_async(output, (rank() + size() - 1) % size());
}

void CollectivesGroup::wait_shift(const at::Tensor& output, const at::Tensor& input) const {
  const GroupScope group(collectives_);
  if (input.numel() > 0) wait_tensor(input);
  if (output.numel() > 0) wait_tensor(output);
}

}  // namespace gallop::parallel
