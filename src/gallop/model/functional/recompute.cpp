#include "gallop/model/functional/recompute.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/custom_class.h>

#include "gallop/base/error.h"
#include "gallop/kernel/barrier.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/first_order.h"
#include "gallop/precision/precision.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Thread-local, so that batch norm deep in a part finds it, like LibTorch's autocast state.
thread_local bool recomputing = false;

// The generators of LibTorch's own random operators: those of the CPU and of a GPU.
class Generators {
 public:
  explicit Generators(c10::Device device) {
    note(c10::kCPU);
    if (!device.is_cpu()) note(device);
  }

  void restore() {
    for (auto& [generator, state] : states_) {
      const std::scoped_lock lock(generator.mutex());
      generator.set_state(state);
    }
  }

  bool operator==(const Generators& other) const {
    return std::equal(states_.begin(), states_.end(), other.states_.begin(), other.states_.end(),
                      [](const auto& a, const auto& b) {
                        const at::Tensor &x = a.second, &y = b.second;
                        return x.nbytes() == y.nbytes() &&
                               std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
                      });
  }

 private:
  void note(c10::Device device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::scoped_lock lock(generator.mutex());
    at::Tensor state = generator.get_state();
    states_.emplace_back(std::move(generator), std::move(state));
  }

  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// The thread state that a part depends on besides its inputs.
struct Surroundings {
  explicit Surroundings(c10::Device where)
      : device(where),
        casts(at::autocast::is_autocast_enabled(where.type())),
        format(at::autocast::get_autocast_dtype(where.type())),
        linear_is_fp8(precision::linear_is_fp8()),
        dropout(DropoutScope::place()),
        generators(where) {}

  c10::Device device;
  bool casts;
  at::ScalarType format;
  bool linear_is_fp8;
  DropoutPlace dropout;
  Generators generators;
};

// Disables autocast's weight cache: a cast cached without gradients would have none.
class NoCastsKept {
 public:
  NoCastsKept() : kept_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~NoCastsKept() { at::autocast::set_autocast_cache_enabled(kept_); }
  NoCastsKept(const NoCastsKept&) = delete;
  NoCastsKept& operator=(const NoCastsKept&) = delete;

 private:
  bool kept_;
};

// While it is alive, this thread has the state in which the part was first computed.
class Again {
 public:
  explicit Again(Surroundings then) : now_(then.device), dropout_(then.dropout) {
    set(then);
    recomputing = true;
  }
  ~Again() {
    recomputing = false;
    set(now_);
  }
  Again(const Again&) = delete;
  Again& operator=(const Again&) = delete;

 private:
  static void set(Surroundings& surroundings) {
    const c10::DeviceType type = surroundings.device.type();
    at::autocast::set_autocast_enabled(type, surroundings.casts);
    at::autocast::set_autocast_dtype(type, surroundings.format);
    precision::set_linear_is_fp8(surroundings.linear_is_fp8);
    surroundings.generators.restore();
  }

  Surroundings now_;
  DropoutScope dropout_;
  NoCastsKept no_casts_kept_;
};

// The saved state of the function besides tensors.
struct Memory : torch::CustomClassHolder {
  Part part;
  size_t inputs = 0;
  std::optional<Surroundings> surroundings;
};

variable_list apart(variable_list results) {
  // Results of a function must be distinct tensors; these may be one tensor with two consumers.
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (results[i].is_same(results[j])) results[i] = results[i].detach();
    }
  }
  return results;
}

// The engine would give each occurrence of a tied parameter the whole gradient.
std::vector<at::Tensor> without_repetitions(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> distinct;
  std::unordered_set<const at::TensorImpl*> seen;
  for (const at::Tensor& tensor : tensors) {
    if (seen.insert(tensor.unsafeGetTensorImpl()).second) distinct.push_back(tensor);
  }
  return distinct;
}

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static variable_list forward(AutogradContext* context, const at::TensorList& inputs,
                               const at::TensorList& parameters,
                               const c10::intrusive_ptr<Memory>& memory) {
    memory->inputs = inputs.size();
    const c10::Device device = inputs[0].device();
    memory->surroundings.emplace(device);
    const NoCastsKept no_casts_kept;
    variable_list results = apart(memory->part(inputs.vec()));
    if (kernel::is_recorded() && !(Generators(device) == memory->surroundings->generators)) {
      throw UsageError(
          "a block that is recomputed draws random numbers in a way that a compiled step cannot "
          "repeat: dropout by LibTorch's operators. Set train.compile to false, or leave out "
          "train.activation_checkpointing");
    }
    variable_list saved(inputs.begin(), inputs.end());
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(std::move(saved));
    context->saved_data["memory"] = c10::IValue::make_capsule(memory);
    context->set_materialize_grads(false);
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order("recompute");
    const auto memory =
        c10::static_intrusive_pointer_cast<Memory>(context->saved_data["memory"].toCapsule());
    variable_list variables = context->get_saved_variables();  // Inputs, then parameters.
    variable_list all(variables.size() + 1);                   // One for the saved state.
    const bool is_wanted = std::any_of(gradients.begin(), gradients.end(),
                                       [](const auto& gradient) { return gradient.defined(); });
    if (!is_wanted) return all;
    for (size_t i = 0; i < memory->inputs; ++i) {
      const bool has_gradient = variables[i].requires_grad();
      variables[i] = kernel::barrier(variables[i]);
      variables[i].set_requires_grad(has_gradient);
    }
    const auto roots = again(*memory, variables, gradients);
    torch::autograd::edge_list edges;
    std::vector<size_t> places;
    for (size_t i = 0; i < variables.size(); ++i) {
      if (!variables[i].requires_grad()) continue;
      edges.push_back(torch::autograd::impl::gradient_edge(variables[i]));
      places.push_back(i);
    }
    // The engine keeps its arguments alive until it ends.
    variables.clear();
    variable_list found = torch::autograd::Engine::get_default_engine().execute(
        roots, std::exchange(gradients, {}), /*keep_graph=*/false, /*create_graph=*/false,
        /*accumulate_grad=*/false, edges);
    for (size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(found[i]);
    return all;
  }

 private:
  // Recomputes the part with gradients. Keeps only those results and gradients that are
  // needed.
  static torch::autograd::edge_list again(const Memory& memory, const variable_list& variables,
                                          variable_list& gradients) {
    const auto end = variables.begin() + static_cast<std::ptrdiff_t>(memory.inputs);
    variable_list results;
    {
      const at::AutoGradMode with_gradients(true);
      const Again again(*memory.surroundings);
      results = memory.part({variables.begin(), end});
    }
    torch::autograd::edge_list roots;
    variable_list kept;
    for (size_t i = 0; i < results.size(); ++i) {
      if (!gradients[i].defined() || !results[i].requires_grad()) continue;
      roots.push_back(torch::autograd::impl::gradient_edge(results[i]));
      kept.push_back(std::move(gradients[i]));
    }
    gradients = std::move(kept);
    return roots;
  }
};

}  // namespace

std::vector<at::Tensor> recompute(Part part, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters) {
  if (!at::GradMode::is_enabled() || recomputing) return part(inputs);
  auto memory = c10::make_intrusive<Memory>();
  memory->part = std::move(part);
  const std::vector<at::Tensor> distinct = without_repetitions(parameters);
  return RecomputeFunction::apply(at::TensorList(inputs), at::TensorList(distinct), memory);
}

bool is_recomputing() { return recomputing; }

}  // namespace gallop::model::functional
