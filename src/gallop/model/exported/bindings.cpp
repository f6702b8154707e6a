#include "gallop/model/exported/bindings.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/option_error.h"

namespace gallop::model::exported {

namespace {

constexpr const char* kInput = "input";
constexpr std::string_view kMask = ".mask";

std::string size_text(const Size& size) {
  return size.is_constant() ? std::to_string(*size.hint) : "any";
}

std::string sizes_text(const TensorMeta& meta) {
  std::vector<std::string> texts;
  for (const Size& size : meta.sizes) texts.push_back(size_text(size));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

// Whether the size is a constant that differs.
bool differs(const Size& size, int64_t wanted) {
  return size.is_constant() && size.hint && *size.hint != wanted;
}

// The program itself embeds the views of a sample: inputs [N, views, ...], outputs [N, views, D].
bool has_views(const TensorMeta& meta, size_t dims, const Task& task) {
  return dims > 1 && meta.sizes.size() == dims && !differs(meta.sizes[1], task.views);
}

void check_views(const BoundInput& input, const TensorMeta& output, const Task& task,
                 const std::string& file) {
  size_t dims = 5;  // [N, views, C, H, W]
  if (task.kind == Task::Kind::kNumbers) dims = task.context > 0 ? 4 : 3;
  // Rows of other shapes are only checked by a step.
  if (task.kind == Task::Kind::kNumbers && task.features == 0) dims = input.meta.sizes.size();
  if (has_views(input.meta, dims, task) && has_views(output, 3, task)) return;
  throw UsageError(fmt::format(
      "{}: was exported for inputs {} and outputs {}, but samples have {} views; export "
      "a module that reads [N, {}, ...] and returns embeddings [N, {}, D]",
      file, sizes_text(input.meta), sizes_text(output), task.views, task.views, task.views));
}

void check_images(const BoundInput& input, const Task& task, const std::string& file) {
  const auto& sizes = input.meta.sizes;
  const size_t first = task.views > 1 ? 2 : 1;
  const bool fits = sizes.size() == first + 3 && !differs(sizes[first], task.channels) &&
                    !differs(sizes[first + 1], task.height) &&
                    !differs(sizes[first + 2], task.width);
  if (fits) return;
  throw UsageError(fmt::format(
      "{}: input '{}' was exported for sizes {}, but the data are images of [{}, {}, {}]; export "
      "with such images, or set data.image_size and data.channels",
      file, input.name, sizes_text(input.meta), task.channels, task.height, task.width));
}

void check_numbers(const BoundInput& input, const Task& task, const std::string& file) {
  const auto& sizes = input.meta.sizes;
  const size_t dims = sizes.size();
  if (task.features == 0 || dims == 0) return;  // Rows of other shapes, which only a step checks.
  const bool has_steps = task.context == 0 || (dims > 1 && !differs(sizes[dims - 2], task.context));
  if (has_steps && !differs(sizes.back(), task.features)) return;
  const std::string steps = task.context > 0 ? fmt::format("{} steps of ", task.context) : "";
  throw UsageError(
      fmt::format("{}: input '{}' was exported for sizes {}, but the data have {}{} numbers", file,
                  input.name, sizes_text(input.meta), steps, task.features));
}

bool takes_input(const std::vector<BoundInput>& bound) {
  return std::any_of(bound.begin(), bound.end(),
                     [](const BoundInput& input) { return input.field == kInput; });
}

// The field of an input; those whose name ends with ".mask" are 1 at tokens and 0 at padding.
at::Tensor field_of(const BoundInput& input, const NamedTensors& batch, const std::string& file) {
  const std::string_view name = input.field;
  if (const at::Tensor* const field = find_tensor(batch, name)) {
    return input.has_padding ? field->clamp_min(0) : *field;
  }
  if (name.ends_with(kMask)) {
    const auto* const field = find_tensor(batch, name.substr(0, name.size() - kMask.size()));
    if (field != nullptr) return field->ge(0);
  }
  std::vector<std::string> names;
  for (const NamedTensor& one : batch) names.push_back(one.name);
  throw config::OptionError(
      "model.inputs",
      fmt::format("input '{}' of {} takes the field '{}', but a batch has {}; bind it to one of "
                  "them, such as model.inputs=[{}={}], or export the model without this input",
                  printable(input.name), file, printable(input.field),
                  printable(join_names(names, "and")), printable(input.name),
                  names.empty() ? "input" : names.front()));
}

}  // namespace

std::vector<BoundInput> bind_inputs(const Program& program, const std::vector<std::string>& given,
                                    const std::string& file) {
  std::vector<BoundInput> bound;
  std::vector<std::string> names;
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kUserInput) continue;
    const TensorMeta* const meta = meta_of(program.graph, input.value);
    if (meta == nullptr) {
      throw UsageError(
          fmt::format("{}: input '{}' is a number, and a batch has only tensors; export "
                      "the model with it as a constant",
                      file, printable(input.name)));
    }
    bound.push_back({.name = input.name, .field = input.name, .meta = *meta, .has_padding = false});
    names.push_back(input.name);
  }
  if (bound.empty()) throw UsageError(fmt::format("{}: the program has no inputs", file));
  if (given.size() > bound.size()) {
    throw config::OptionError(
        "model.inputs", fmt::format("names {} fields, but {} has {} inputs: {}", given.size(), file,
                                    bound.size(), join_names(names, "and")));
  }
  std::vector<BoundInput*> open;
  for (BoundInput& input : bound) open.push_back(&input);
  for (size_t i = 0; i < given.size(); ++i) {
    const size_t equals = given[i].find('=');
    if (equals == std::string::npos) {
      bound[i].field = given[i];
      std::erase(open, &bound[i]);
      continue;
    }
    const std::string name = given[i].substr(0, equals);
    const auto found = std::find_if(bound.begin(), bound.end(),
                                    [&](const BoundInput& input) { return input.name == name; });
    if (found == bound.end()) {
      throw config::OptionError("model.inputs",
                                fmt::format("{} has no input '{}'; its inputs are {}", file,
                                            printable(name), join_names(names, "and")));
    }
    found->field = given[i].substr(equals + 1);
    std::erase(open, &*found);
  }
  std::erase_if(open, [](BoundInput* input) {
    const bool is_mask = input->name == "attention_mask", is_target = input->name == "labels";
    if (is_mask) input->field = std::string(kInput) + std::string(kMask);
    if (is_target) input->field = "target";
    return is_mask || is_target;
  });
  if (open.size() == 1 && !takes_input(bound)) open.front()->field = kInput;
  return bound;
}

size_t find_output(const Program& program, const std::string& name, const std::string& file) {
  const auto& outputs = program.outputs;
  std::vector<std::string> names;
  for (const OutputSpec& output : outputs) names.push_back(output.name);
  const std::string wanted = name.empty() && outputs.size() > 1 ? "logits" : name;
  if (wanted.empty() && outputs.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw config::OptionError(
      "model.output", fmt::format("{} has {} outputs: {}; name the one that the loss reads", file,
                                  names.size(), join_names(names, "and")));
}

std::optional<size_t> find_loss(const Program& program, size_t output) {
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (i == output || program.outputs[i].name != "loss") continue;
    const TensorMeta* const meta = meta_of(program.graph, program.outputs[i].value);
    if (meta != nullptr && meta->sizes.empty()) return i;
  }
  return std::nullopt;
}

void check_task(const Program& program, const std::vector<BoundInput>& inputs, size_t output,
                const Task& task, const std::string& file) {
  const auto main = std::find_if(inputs.begin(), inputs.end(),
                                 [](const BoundInput& input) { return input.field == kInput; });
  const TensorMeta* const meta = meta_of(program.graph, program.outputs[output].value);
  if (meta == nullptr) {
    throw UsageError(
        fmt::format("{}: output '{}' is not a tensor", file, program.outputs[output].name));
  }
  if (main != inputs.end()) {
    if (task.views > 1 && task.kind != Task::Kind::kText) check_views(*main, *meta, task, file);
    if (task.kind == Task::Kind::kImages) check_images(*main, task, file);
    if (task.kind == Task::Kind::kNumbers) check_numbers(*main, task, file);
    const bool takes_indices = c10::isIntegralType(main->meta.dtype, /*includeBool=*/true);
    if (takes_indices != (task.kind == Task::Kind::kText)) {
      throw UsageError(fmt::format("{}: input '{}' takes {}, but the data are {}", file, main->name,
                                   takes_indices ? "indices" : "numbers",
                                   task.kind == Task::Kind::kText ? "tokens" : "numbers"));
    }
  }
  constexpr size_t kSequence = 3;
  if (task.sequences && meta->sizes.size() != kSequence) {
    throw UsageError(fmt::format(
        "{}: output '{}' has sizes {}, but the data need sequences of outputs [N, T, {}]", file,
        program.outputs[output].name, sizes_text(*meta), task.classes));
  }
  if (task.classes == 0 || meta->sizes.empty()) return;
  const bool is_image = task.kind == Task::Kind::kImages && task.is_per_element();
  const Size& classes = is_image && meta->sizes.size() > 1 ? meta->sizes[1] : meta->sizes.back();
  if (!differs(classes, task.classes)) return;
  throw UsageError(fmt::format(
      "{}: output '{}' has sizes {}, but the data need {} outputs; export the "
      "model with {} outputs",
      file, program.outputs[output].name, sizes_text(*meta), task.classes, task.classes));
}

at::Tensor as_input(const BoundInput& input, const NamedTensors& batch,
                    const std::map<std::string, Range>& ranges, const std::string& file) {
  const auto& sizes = input.meta.sizes;
  const at::Tensor tensor = field_of(input, batch, file);
  if (static_cast<size_t>(tensor.dim()) != sizes.size()) {
    throw UsageError(fmt::format("{}: input '{}' was exported for sizes {}, but field '{}' has {}",
                                 file, input.name, sizes_text(input.meta), input.field,
                                 fmt::join(tensor.sizes(), "x")));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto range = ranges.find(sizes[i].symbol);
    if (range == ranges.end()) continue;
    const int64_t size = tensor.size(static_cast<int64_t>(i));
    auto [least, most] = range->second;
    // torch.export excludes 1, which it would make a constant; the operators take it.
    if (least == int64_t{2}) least = 1;
    if ((!least || size >= *least) && (!most || size <= *most)) continue;
    throw UsageError(fmt::format(
        "{}: dimension {} of input '{}' was exported for {} to {}, and is {}; export with a wider "
        "Dim",
        file, i, input.name, least.value_or(0), most ? std::to_string(*most) : "any number", size));
  }
  return tensor.scalar_type() == input.meta.dtype ? tensor : tensor.to(input.meta.dtype);
}

}  // namespace gallop::model::exported
