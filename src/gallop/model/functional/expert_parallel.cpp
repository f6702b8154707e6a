#include "gallop/model/functional/expert_parallel.h"

#include <algorithm>
#include <numeric>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"
#include "gallop/kernel/barrier.h"
#include "gallop/model/functional/first_order.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

int64_t sum_of(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

at::Tensor indices(const std::vector<int64_t>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

at::Tensor selected(const at::Tensor& rows, const at::Tensor& order) {
  return order.defined() ? rows.index_select(0, order) : rows.contiguous();
}

at::Tensor exchanged(const at::Tensor& rows, const std::vector<int64_t>& send,
                     const std::vector<int64_t>& receive, const TensorGroup& group) {
  const int64_t width = rows.size(1);
  const auto elements = [width](std::vector<int64_t> sizes) {
    for (int64_t& size : sizes) size *= width;
    return sizes;
  };
  const at::Tensor received = at::empty({sum_of(receive), width}, rows.options());
  group.all_to_all(received.view({-1}), rows.view({-1}), elements(receive), elements(send));
  return received;
}

at::Tensor to_experts(const at::Tensor& rows, const ExpertRoute& route, const TensorGroup& group) {
  const at::Tensor received =
      exchanged(selected(rows, route.sent), route.send, route.receive, group);
  return selected(received, route.by_expert);
}

at::Tensor from_experts(const at::Tensor& rows, const ExpertRoute& route,
                        const TensorGroup& group) {
  at::Tensor back = exchanged(selected(rows, route.by_process), route.receive, route.send, group);
  if (!route.sent.defined()) return back;
  return at::zeros({route.rows, rows.size(1)}, rows.options()).index_copy(0, route.sent, back);
}

void keep(AutogradContext* context, const ExpertRoute& route, const TensorGroup& group) {
  context->save_for_backward({route.sent, route.by_expert, route.by_process});
  context->saved_data["rows"] = route.rows;
  context->saved_data["send"] = route.send;
  context->saved_data["receive"] = route.receive;
  context->saved_data["group"] = reinterpret_cast<int64_t>(&group);
}

ExpertRoute route_of(AutogradContext* context) {
  const auto saved = context->get_saved_variables();
  return {.sent = saved[0],
          .rows = context->saved_data["rows"].toInt(),
          .send = context->saved_data["send"].toIntVector(),
          .receive = context->saved_data["receive"].toIntVector(),
          .by_expert = saved[1],
          .by_process = saved[2]};
}

const TensorGroup& group_of(AutogradContext* context) {
  return *reinterpret_cast<const TensorGroup*>(context->saved_data["group"].toInt());
}

using Move = at::Tensor(const at::Tensor&, const ExpertRoute&, const TensorGroup&);

// One way; the gradient takes the other one.
template <Move kForward, Move kBackward>
struct Exchange : torch::autograd::Function<Exchange<kForward, kBackward>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& rows,
                            const ExpertRoute& route, const TensorGroup& group) {
    keep(context, route, group);
    return kForward(rows, route, group);
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    require_first_order(kForward == &to_experts ? "send_to_experts" : "send_from_experts");
    return {kBackward(gradients[0], route_of(context), group_of(context)), {}, {}};
  }
};

}  // namespace

ExpertRoute route_to_experts(const ExpertOrder& order, const TensorGroup& group) {
  // A dry run, in which processes exchange nothing, ends here: it rejects numbers read by the host.
  if (kernel::is_recorded()) order.ranges.sum().item<int64_t>();
  const auto ranks = static_cast<size_t>(group.size());
  const at::Tensor ranges = order.ranges.cpu().contiguous();
  const auto* const bounds = ranges.const_data_ptr<int64_t>();
  const auto experts = static_cast<size_t>(ranges.size(0)), own = experts / ranks;
  if (own * ranks != experts) throw InternalError("expert parallel: unequal numbers of experts");

  ExpertRoute route{.sent = {}, .rows = order.copies.numel(), .send = std::vector<int64_t>(ranks)};
  std::vector<int64_t> counts;
  for (size_t expert = 0; expert < experts; ++expert) {
    counts.push_back(bounds[2 * expert + 1] - bounds[2 * expert]);
    route.send[expert / own] += counts.back();
  }
  if (sum_of(counts) < route.rows) {
    std::vector<int64_t> sent;
    for (size_t expert = 0; expert < experts; ++expert) {
      for (int64_t row = bounds[2 * expert]; row < bounds[2 * expert + 1]; ++row) {
        sent.push_back(row);
      }
    }
    route.sent = indices(sent);
  }

  // From each process, how many copies for each expert here.
  const at::Tensor from = at::empty({static_cast<int64_t>(experts)}, at::kLong);
  const std::vector<int64_t> equal(ranks, static_cast<int64_t>(own));
  group.all_to_all(from, indices(counts), equal, equal);
  const auto* const received = from.const_data_ptr<int64_t>();
  std::vector<int64_t> begins;
  int64_t begin = 0;
  for (size_t i = 0; i < experts; ++i) {
    begins.push_back(begin);
    begin += received[i];
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    const auto* const first = received + rank * own;
    route.receive.push_back(std::accumulate(first, first + own, int64_t{0}));
  }
  std::vector<int64_t> by_expert, by_process(static_cast<size_t>(begin)), here;
  for (size_t expert = 0; expert < own; ++expert) {
    here.push_back(static_cast<int64_t>(by_expert.size()));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const size_t i = rank * own + expert;
      for (int64_t row = begins[i]; row < begins[i] + received[i]; ++row) {
        by_process[static_cast<size_t>(row)] = static_cast<int64_t>(by_expert.size());
        by_expert.push_back(row);
      }
    }
    here.push_back(static_cast<int64_t>(by_expert.size()));
  }
  route.here.ranges = indices(here).view({-1, 2});
  if (own > 1) {
    route.by_expert = indices(by_expert);
    route.by_process = indices(by_process);
  }
  return route;
}

at::Tensor send_to_experts(const at::Tensor& rows, const ExpertRoute& route,
                           const TensorGroup& group) {
  return Exchange<to_experts, from_experts>::apply(rows, route, group);
}

at::Tensor send_from_experts(const at::Tensor& rows, const ExpertRoute& route,
                             const TensorGroup& group) {
  return Exchange<from_experts, to_experts>::apply(rows, route, group);
}

}  // namespace gallop::model::functional
