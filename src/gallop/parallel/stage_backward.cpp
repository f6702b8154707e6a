#include "gallop/parallel/stage_backward.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace gallop::parallel {

namespace {

using torch::autograd::AccumulateGrad;
using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

// Keeps the gradients that arrive at a node.
struct KeepGradients final : torch::autograd::FunctionPreHook {
  explicit KeepGradients(std::shared_ptr<variable_list> kept_) : kept(std::move(kept_)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (kept->empty()) *kept = gradients;
    return gradients;
  }
  std::shared_ptr<variable_list> kept;
};

void execute(const edge_list& roots, const variable_list& gradients, bool keep_graph,
             const edge_list& leaves) {
  torch::autograd::Engine::get_default_engine().execute(roots, gradients, keep_graph,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true, leaves);
}

// The nodes behind `roots`, each after all that it leads to.
std::vector<std::shared_ptr<Node>> nodes_behind(const edge_list& roots) {
  std::vector<std::shared_ptr<Node>> sorted;
  std::unordered_set<Node*> seen;
  for (const Edge& root : roots) {
    if (!seen.insert(root.function.get()).second) continue;
    std::vector<std::pair<std::shared_ptr<Node>, size_t>> path = {{root.function, 0}};
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == node->next_edges().size()) {
        sorted.push_back(node);
        path.pop_back();
        continue;
      }
      const std::shared_ptr<Node> other = node->next_edges()[next++].function;
      if (other && seen.insert(other.get()).second) path.emplace_back(other, 0);
    }
  }
  return sorted;
}

edge_list gradient_edges(const std::vector<at::Tensor>& tensors) {
  edge_list edges;
  for (const at::Tensor& tensor : tensors) {
    edges.push_back(torch::autograd::impl::gradient_edge(tensor));
  }
  return edges;
}

}  // namespace

void compute_gradients(const std::vector<at::Tensor>& outputs,
                       const std::vector<at::Tensor>& gradients) {
  torch::autograd::backward(outputs, gradients);
}

struct StageBackward::Part {
  std::shared_ptr<Node> node;
  edge_list weights;
  std::shared_ptr<variable_list> gradients = std::make_shared<variable_list>();

  void compute() const {
    edge_list roots;
    variable_list of_roots;
    for (size_t i = 0; i < gradients->size(); ++i) {
      if (!(*gradients)[i].defined()) continue;
      roots.emplace_back(node, static_cast<uint32_t>(i));
      of_roots.push_back((*gradients)[i]);
    }
    if (!roots.empty()) execute(roots, of_roots, /*keep_graph=*/false, weights);
  }
};

StageBackward::~StageBackward() = default;
StageBackward::StageBackward(StageBackward&&) noexcept = default;
StageBackward& StageBackward::operator=(StageBackward&&) noexcept = default;

StageBackward::StageBackward(std::vector<at::Tensor> outputs, std::vector<at::Tensor> gradients,
                             const std::vector<at::Tensor>& inputs)
    : outputs_(std::move(outputs)), gradients_(std::move(gradients)) {
  edge_list of_inputs;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) {
      of_inputs.push_back(torch::autograd::impl::gradient_edge(input));
    }
  }
  if (of_inputs.empty()) return;
  const edge_list all_roots = gradient_edges(outputs_);
  std::unordered_set<Node*> leads_to_input;
  for (const Edge& input : of_inputs) leads_to_input.insert(input.function.get());
  // The weights behind each node that does not lead to an input.
  std::unordered_map<Node*, std::vector<std::shared_ptr<Node>>> weights;
  std::unordered_map<Node*, int> uses;
  const auto add_part = [&](const std::shared_ptr<Node>& node,
                            const std::vector<std::shared_ptr<Node>>& behind) {
    Part& part = *parts_.emplace_back(std::make_unique<Part>());
    part.node = node;
    std::unordered_set<Node*> listed;
    for (const std::shared_ptr<Node>& weight : behind) {
      if (!listed.insert(weight.get()).second) continue;
      // The gradient of a weight that several nodes use would be counted several times.
      if (++uses[weight.get()] > 1) is_divided_ = false;
      part.weights.emplace_back(weight, 0);
    }
  };
  is_divided_ = true;
  for (const std::shared_ptr<Node>& node : nodes_behind(all_roots)) {
    if (leads_to_input.contains(node.get())) continue;  // An input.
    std::vector<std::shared_ptr<Node>> own;
    if (dynamic_cast<AccumulateGrad*>(node.get()) != nullptr) own.push_back(node);
    bool leads = false;
    for (const Edge& edge : node->next_edges()) {
      if (!edge.function) continue;
      if (leads_to_input.contains(edge.function.get())) {
        leads = true;
      } else {
        const auto& behind = weights[edge.function.get()];
        own.insert(own.end(), behind.begin(), behind.end());
      }
    }
    if (!leads) {
      weights[node.get()] = std::move(own);
      continue;
    }
    leads_to_input.insert(node.get());
    if (!own.empty()) add_part(node, own);
  }
  const size_t hooked = parts_.size();
  edge_list roots;
  variable_list of_roots;
  for (size_t i = 0; i < all_roots.size(); ++i) {
    const Edge& root = all_roots[i];
    if (leads_to_input.contains(root.function.get())) {
      roots.push_back(root);
      of_roots.push_back(gradients_[i]);
      continue;
    }
    // Its gradient is known already, and is for weights alone.
    add_part(root.function, weights[root.function.get()]);
    parts_.back()->gradients->resize(root.input_nr + 1);
    parts_.back()->gradients->back() = gradients_[i];
  }
  if (roots.empty()) {  // No output depends on an input.
    parts_.clear();
    is_divided_ = false;
    return;
  }
  if (is_divided_) {
    for (size_t i = 0; i < hooked; ++i) {
      parts_[i]->node->add_pre_hook(std::make_unique<KeepGradients>(parts_[i]->gradients));
    }
  }
  execute(roots, of_roots, /*keep_graph=*/true, of_inputs);
}

void StageBackward::compute_weight_gradients() {
  if (is_divided_) {
    for (const auto& part : parts_) part->compute();
  } else if (parts_.empty()) {
    compute_gradients(outputs_, gradients_);
  } else {
    edge_list weights;
    std::unordered_set<Node*> listed;
    for (const auto& part : parts_) {
      for (const Edge& weight : part->weights) {
        if (listed.insert(weight.function.get()).second) weights.push_back(weight);
      }
    }
    execute(gradient_edges(outputs_), gradients_, /*keep_graph=*/false, weights);
  }
  parts_.clear();
  outputs_.clear();
  gradients_.clear();
}

}  // namespace gallop::parallel
