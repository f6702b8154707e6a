#include "gallop/parallel/stage_parameters.h"

#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "gallop/parallel/group_scope.h"
#include "gallop/parallel/packed.h"
#include "gallop/parallel/sums.h"

namespace gallop::parallel {

StageParameters::StageParameters(NamedTensors parameters, NamedTensors statistics,
                                 TensorOwners owners, Collectives& collectives)
    : parameters_(std::move(parameters)),
      statistics_(std::move(statistics)),
      owners_(std::move(owners)),
      collectives_(collectives) {}

void StageParameters::gather() {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> all;
  for (const NamedTensors* list : {&parameters_, &statistics_}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.numel() == 0) continue;
      std::vector<int64_t> sizes(static_cast<size_t>(collectives_.size()));
      sizes[static_cast<size_t>(owner_of(name))] = tensor.numel();
      all.push_back(in_memory_order(tensor));
      collectives_.all_gather_async(all.back(), sizes);
    }
  }
  for (const at::Tensor& tensor : all) collectives_.wait(tensor);
  are_gathered_ = true;
}

void StageParameters::send_to_readers() {
  are_gathered_ = false;
  const at::NoGradGuard no_grad;
  const GroupScope group(collectives_);
  for (const auto& [name, tensor] : parameters_) {
    const auto reader = owners_.readers.find(name);
    if (reader == owners_.readers.end() || reader->second == owner_of(name)) continue;
    const at::Tensor value = in_memory_order(tensor);
    if (is_here(name)) {
      send_async(value, reader->second);
    } else if (reader->second == collectives_.rank()) {
      recv_async(value, owner_of(name));
    } else {
      continue;
    }
    wait_tensor(value);
  }
}

}  // namespace gallop::parallel
