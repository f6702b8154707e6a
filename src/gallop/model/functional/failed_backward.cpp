#include "gallop/model/functional/failed_backward.h"

#include <memory>

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/engine.h>

namespace gallop::model::functional {

namespace {

using torch::autograd::variable_list;

// Without gradients. The queue returns the node with the lowest number last.
class LastNode final : public torch::autograd::Node {
 public:
  explicit LastNode(const at::Tensor& input) : Node(/*sequence_nr=*/0) {
    add_input_metadata(input);
  }
  variable_list apply(variable_list&& /*gradients*/) override { return {}; }
};

}  // namespace

void drop_failed_backward() {
  const at::Tensor input = at::empty({0});
  torch::autograd::Engine::get_default_engine().execute(
      {{std::make_shared<LastNode>(input), 0}}, {input}, /*keep_graph=*/false,
      /*create_graph=*/false, /*accumulate_grad=*/true);
}

}  // namespace gallop::model::functional
