#include "gallop/model/exported/regions.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::model::exported {

namespace {

struct Form {
  const char* name;
  size_t settings;  // Arguments before those of the subgraph.
  size_t subgraphs;
};

constexpr Form kForms[] = {
    {"cond", 1, 2}, {"wrap_with_autocast", 4, 1}, {"wrap_with_set_grad_enabled", 1, 1}};

const Form* find_form(const std::string& name) {
  for (const Form& form : kForms) {
    if (form.name == name) return &form;
  }
  return nullptr;
}

/// Autocast of the type of device that a program was exported for, on the device it runs on.
class AutocastScope {
 public:
  AutocastScope(c10::DeviceType device, c10::ScalarType dtype, bool enabled, bool cache_enabled)
      : device_(device),
        was_enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)),
        was_cache_enabled_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device_, enabled);
    at::autocast::set_autocast_dtype(device_, dtype);
    at::autocast::set_autocast_cache_enabled(cache_enabled);
  }
  ~AutocastScope() {
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
    at::autocast::set_autocast_cache_enabled(was_cache_enabled_);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
  c10::ScalarType dtype_;
  bool was_cache_enabled_;
};

// The device of the first tensor.
c10::DeviceType device_of(const std::vector<c10::IValue>& values) {
  for (const c10::IValue& value : values) {
    if (value.isTensor() && value.toTensor().defined()) return value.toTensor().device().type();
  }
  return c10::kCPU;
}

bool truth(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor().item<bool>() : value.toBool();
}

}  // namespace

const std::vector<std::string_view>& region_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (const Form& form : kForms) names.emplace_back(form.name);
    return names;
  }();
  return kNames;
}

std::string check_region(const std::string& name, const std::vector<Operand>& arguments,
                         const std::vector<std::unique_ptr<Interpreter>>& subgraphs) {
  const Form* const form = find_form(name);
  if (form == nullptr) return "is a higher-order operator that is not supported";
  if (subgraphs.size() != form->subgraphs || arguments.size() < form->settings) {
    return fmt::format("needs {} graphs and {} other arguments", form->subgraphs, form->settings);
  }
  for (const auto& subgraph : subgraphs) {
    const size_t given = arguments.size() - form->settings;
    if (subgraph->inputs() == given) continue;
    return fmt::format("gives {} arguments to a graph of {} inputs", given, subgraph->inputs());
  }
  if (name == "cond") return {};
  const auto is_constant = [&](size_t i, bool (c10::IValue::*is)() const) {
    return arguments[i].kind == Operand::Kind::kConstant && (arguments[i].constant.*is)();
  };
  const bool fits = name == "wrap_with_set_grad_enabled" ? is_constant(0, &c10::IValue::isBool)
                                                         : (is_constant(1, &c10::IValue::isInt) ||
                                                            is_constant(1, &c10::IValue::isNone)) &&
                                                               is_constant(2, &c10::IValue::isBool);
  return fits ? "" : "has settings of other types";
}

std::vector<c10::IValue> run_region(const std::string& name, std::vector<c10::IValue> arguments,
                                    const std::vector<std::unique_ptr<Interpreter>>& subgraphs) {
  const Form& form = *find_form(name);
  const std::vector<c10::IValue> settings(
      arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(form.settings));
  arguments.erase(arguments.begin(),
                  arguments.begin() + static_cast<std::ptrdiff_t>(form.settings));
  if (name == "cond") return subgraphs[truth(settings[0]) ? 0 : 1]->run(std::move(arguments));
  if (name == "wrap_with_set_grad_enabled") {
    const at::AutoGradMode mode(settings[0].toBool());
    return subgraphs[0]->run(std::move(arguments));
  }
  const c10::DeviceType device = device_of(arguments);
  const auto dtype = settings[1].isInt() ? static_cast<c10::ScalarType>(settings[1].toInt())
                                         : at::autocast::get_autocast_dtype(device);
  const AutocastScope scope(
      device, dtype, settings[2].toBool(),
      settings[3].isBool() ? settings[3].toBool() : at::autocast::is_autocast_cache_enabled());
  return subgraphs[0]->run(std::move(arguments));
}

}  // namespace gallop::model::exported
