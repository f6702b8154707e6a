#include "gallop/model/summary.h"

#include <cmath>
#include <unordered_map>

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/StorageImpl.h>

#include "gallop/base/error.h"

namespace gallop::model {

namespace {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

// What is known about an operator at its start; its inputs are not available at its end.
struct Call final : at::ObserverContext {
  std::string op;
  std::string detail;  // "3x3"
  bool counts = false;
  int64_t flops = 0;
  int64_t flops_per_output = 0;
  double active_share = 1;  // Fraction of the parameters, for a token.
  std::vector<size_t> parameters;
};

at::Tensor tensor_at(c10::ArrayRef<const c10::IValue> values, size_t index) {
  return index < values.size() && values[index].isTensor() ? values[index].toTensor()
                                                           : at::Tensor();
}

// Calls `function` for every tensor among `values`, also in lists.
template <typename F>
void for_each_tensor(c10::ArrayRef<const c10::IValue> values, F function) {
  for (const auto& value : values) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) function(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& tensor : value.toTensorVector()) function(tensor);
    }
  }
}

// Counts the FLOPs of operators that multiply matrices; nested operators are not counted again.
// `inputs_of_model`: the number of elements, such as tokens, that the model is given.
void count_flops(Call& call, c10::ArrayRef<const c10::IValue> inputs, int64_t inputs_of_model) {
  const auto& op = call.op;
  const auto a = tensor_at(inputs, 0), b = tensor_at(inputs, 1);
  call.counts = true;
  if (op == "conv1d" || op == "conv2d" || op == "conv3d" || op == "convolution") {
    const bool transposed = op == "convolution" && inputs[6].toBool();
    const int64_t window = b.numel() / b.size(0);
    if (transposed) {
      call.flops = 2 * a.numel() * window;
    } else {
      call.flops_per_output = 2 * window;
    }
    for (int64_t i = 2; i < b.dim(); ++i) {
      call.detail += (i > 2 ? "x" : "") + std::to_string(b.size(i));
    }
  } else if (op == "linear") {
    call.flops_per_output = 2 * b.size(-1);
  } else if (op == "grouped_linear") {  // Rows [tokens * k, in] and a weight [experts, out, in].
    call.flops_per_output = 2 * a.size(-1);
    call.active_share =
        static_cast<double>(a.size(0)) / static_cast<double>(inputs_of_model * b.size(0));
  } else if (op == "mm" || op == "bmm" || op == "mv" || op == "dot") {
    call.flops_per_output = 2 * a.size(-1);
  } else if (op == "addmm" || op == "baddbmm" || op == "addmv") {
    call.flops_per_output = 2 * b.size(-1);
  } else if (op.starts_with("scaled_dot_product") || op.starts_with("_scaled_dot_product")) {
    const auto value = tensor_at(inputs, 2);
    // Queries times keys, then weights times values.
    call.flops =
        2 * a.numel() * b.size(-2) + 2 * a.numel() / a.size(-1) * b.size(-2) * value.size(-1);
    call.op = "attention";
  } else if (op == "attention") {  // Ours: queries, keys and values in one, [B, T, 3, H, D].
    call.flops = int64_t{4} * a.numel() / 3 * a.size(1);
  } else {
    call.counts = false;
  }
}

// Records the operators of one forward pass on this thread.
class Recorder {
 public:
  explicit Recorder(const NamedTensors& parameters, const at::Tensor& input)
      : inputs_(input.numel()) {
    for (const auto& parameter : parameters) {
      parameter_of_[storage_of(parameter.tensor)] = parameters_.size();
      parameters_.push_back(
          {parameter.name.substr(0, parameter.name.rfind('.')), parameter.tensor.numel(), false});
      remember(parameter.tensor, kNoRow);
    }
    remember(input, kNoRow);
    active = this;
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(&Recorder::start, &Recorder::end)
                                       .needsInputs(true)
                                       .needsOutputs(true)
                                       .scopes({at::RecordScope::FUNCTION}));
  }
  ~Recorder() {
    at::removeCallback(handle_);
    active = nullptr;
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Returns all rows, with the bytes of the tensors made in each that are still held.
  std::vector<LayerSummary> rows() {
    for (const auto& made : made_) {
      const auto storage = made.storage.lock();
      if (storage && made.row != kNoRow) {
        rows_[made.row].activation_bytes += static_cast<int64_t>(storage->nbytes());
      }
    }
    std::vector<LayerSummary> list;
    for (auto& row : rows_) {
      if (row.flops > 0 || row.activation_bytes > 0 || !row.name.empty()) list.push_back(row);
    }
    for (const auto& parameter : parameters_) {
      if (parameter.claimed) continue;
      list.emplace_back().name = parameter.layer;
      list.back().type = "not used";
      list.back().parameters = parameter.numel;
    }
    return list;
  }

 private:
  static constexpr size_t kNoRow = ~size_t{0};
  struct Parameter {
    std::string layer;
    int64_t numel;
    bool claimed;
  };
  struct Made {
    WeakStorage storage;  // Weak: prevents reuse of the address, but frees the memory.
    size_t row;
  };

  static const c10::StorageImpl* storage_of(const at::Tensor& tensor) {
    return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
  }

  bool remember(const at::Tensor& tensor, size_t row) {
    const auto* storage = storage_of(tensor);
    if (storage == nullptr || !known_.emplace(storage, made_.size()).second) return false;
    made_.push_back({tensor.storage().getWeakStorageImpl(), row});
    return true;
  }

  static std::unique_ptr<at::ObserverContext> start(const at::RecordFunction& function) {
    return active == nullptr ? nullptr : active->begin_call(function);
  }
  static void end(const at::RecordFunction& function, at::ObserverContext* context) {
    if (active != nullptr && context != nullptr) {
      active->end_call(function, static_cast<Call&>(*context));
    }
  }

  std::unique_ptr<Call> begin_call(const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    call->op = function.name();
    if (const auto colons = call->op.rfind(':'); colons != std::string::npos) {
      call->op.erase(0, colons + 1);
    }
    if (counting_ == 0) count_flops(*call, function.inputs(), inputs_);
    if (call->counts) ++counting_;
    for_each_tensor(function.inputs(), [&](const at::Tensor& tensor) {
      const auto found = parameter_of_.find(storage_of(tensor));
      if (found != parameter_of_.end()) call->parameters.push_back(found->second);
    });
    if (depth_++ == 0) open_row_ = rows_.size();
    return call;
  }

  void end_call(const at::RecordFunction& function, Call& call) {
    std::vector<int64_t> sizes;
    int64_t numel = 0;
    bool made = false;
    for_each_tensor(
        c10::ArrayRef<const c10::IValue>(function.outputs().data(), function.outputs().size()),
        [&](const at::Tensor& tensor) {
          if (numel == 0) {
            sizes = tensor.sizes().vec();
            numel = tensor.numel();
          }
          made = remember(tensor, open_row_) || made;
        });
    if (call.counts) --counting_;
    inner_.flops += call.flops + call.flops_per_output * numel;
    made_inside_ = made_inside_ || made;
    if (--depth_ == 0) close_row(call, std::move(sizes));
  }

  // An outermost operator that only creates views or works in place is not listed.
  void close_row(const Call& call, std::vector<int64_t> sizes) {
    auto row = std::exchange(inner_, {});
    if (std::exchange(made_inside_, false) || row.flops > 0) {
      row.type = call.detail.empty() ? call.op : call.op + " " + call.detail;
      row.output_sizes = std::move(sizes);
      // An operator may do the work of two layers; the second gets a row for its parameters.
      std::vector<LayerSummary> others;
      for (const size_t index : call.parameters) {
        auto& parameter = parameters_[index];
        if (row.name.empty()) row.name = parameter.layer;
        if (std::exchange(parameter.claimed, true)) continue;
        if (parameter.layer == row.name) {
          row.parameters += parameter.numel;
          row.idle_parameters +=
              std::llround(static_cast<double>(parameter.numel) * (1 - call.active_share));
        } else {
          auto& other = others.emplace_back();
          other.name = parameter.layer;
          other.type = row.type;
          other.parameters = parameter.numel;
        }
      }
      rows_.push_back(std::move(row));
      for (auto& other : others) rows_.push_back(std::move(other));
    }
  }

  // The callbacks are plain functions and find their recorder through this.
  static thread_local Recorder* active;

  int64_t inputs_;
  at::CallbackHandle handle_;
  std::vector<Parameter> parameters_;
  std::unordered_map<const c10::StorageImpl*, size_t> parameter_of_;
  std::unordered_map<const c10::StorageImpl*, size_t> known_;
  std::vector<Made> made_;
  std::vector<LayerSummary> rows_;
  LayerSummary inner_;
  size_t open_row_ = 0;
  bool made_inside_ = false;
  int depth_ = 0;
  int counting_ = 0;
};

thread_local Recorder* Recorder::active = nullptr;

// Restores what a forward pass in training mode changes.
class Restore {
 public:
  Restore(Model& model, at::Device device)
      : model_(model),
        training_(model.training()),
        generator_(at::globalContext().defaultGenerator(device)),
        random_state_(generator_.get_state()) {
    for (const auto& buffer : model.buffers()) saved_.push_back(buffer.tensor.clone());
    model.set_training(true);
  }
  ~Restore() {
    const auto buffers = model_.buffers();
    for (size_t i = 0; i < saved_.size(); ++i) buffers[i].tensor.copy_(saved_[i]);
    model_.set_training(training_);
    generator_.set_state(random_state_);
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  Model& model_;
  bool training_;
  at::Generator generator_;
  at::Tensor random_state_;
  std::vector<at::Tensor> saved_;
};

// One sample of zeros.
at::Tensor sample_input(const Task& task, const at::TensorOptions& options) {
  const bool is_text = task.kind == Task::Kind::kText;
  std::vector<int64_t> sizes = {1, task.channels, task.height, task.width};
  if (is_text) {
    sizes = {1, task.context};
    if (task.views > 1) sizes.push_back(task.views);
  } else if (task.kind == Task::Kind::kNumbers) {
    sizes = {1, task.features};
    if (task.context > 0) sizes.insert(sizes.begin() + 1, task.context);
  }
  if (!is_text && task.views > 1) sizes.insert(sizes.begin() + 1, task.views);
  return at::zeros(sizes, options.dtype(is_text ? at::kLong : at::kFloat));
}

}  // namespace

std::vector<LayerSummary> summarize(Model& model, const Task& task) {
  const auto parameters = model.parameters();
  const auto device = parameters.empty() ? at::Device(at::kCPU) : parameters[0].tensor.device();
  if (device.is_meta()) {
    throw UsageError("a model without values cannot be run, so its layers cannot be listed");
  }
  const auto input = sample_input(task, at::TensorOptions().device(device));
  const Restore restore(model, device);
  Recorder recorder(parameters, input);
  // Keep only the graph, so that the logits count only if backward needs them.
  const auto graph = model.forward(input).grad_fn();
  return recorder.rows();
}

LayerSummary total_of(const std::vector<LayerSummary>& layers) {
  LayerSummary total;
  total.type = "total";
  for (const auto& layer : layers) {
    if (!layer.output_sizes.empty()) total.output_sizes = layer.output_sizes;
    total.parameters += layer.parameters;
    total.idle_parameters += layer.idle_parameters;
    total.flops += layer.flops;
    total.activation_bytes += layer.activation_bytes;
  }
  return total;
}

}  // namespace gallop::model
