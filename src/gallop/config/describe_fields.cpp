#include "gallop/config/component.h"
#include "gallop/config/field_text.h"
#include "gallop/config/resolve.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

namespace {

class Describer final : public Visitor {
 public:
  Describer(std::string prefix, std::vector<FieldHelp>& lines)
      : prefix_(std::move(prefix)), lines_(lines) {}

  void field(const Field& field, bool& value) override {
    add(field, "true | false", value ? "true" : "false");
  }
  void field(const Field& field, int64_t& value) override {
    add(field, allowed_range(field, "integer"), std::to_string(value));
  }
  void field(const Field& field, double& value) override {
    add(field, allowed_range(field, "number"), number_text(value));
  }
  void field(const Field& field, std::string& value) override {
    std::string type = field.is_path ? "path" : "string";
    if (!field.choices.empty()) {
      type.clear();
      for (const auto& choice : field.choices) type += (type.empty() ? "" : " | ") + choice;
    }
    add(field, type, value.empty() ? "none" : value);
  }
  void field(const Field& field, std::vector<int64_t>& value) override {
    list(field, "list of integers", value.empty());
  }
  void field(const Field& field, std::vector<double>& value) override {
    list(field, "list of numbers", value.empty());
  }
  void field(const Field& field, std::vector<std::string>& value) override {
    list(field, "list of strings", value.empty());
  }
  void field(const Field& field, std::optional<int64_t>& value) override {
    add(field, allowed_range(field, "integer") + " | none",
        value ? std::to_string(*value) : "none");
  }
  void field(const Field& field, std::optional<double>& value) override {
    add(field, allowed_range(field, "number") + " | none", value ? number_text(*value) : "none");
  }
  void field(const Field& field, Component& value) override {
    add(field, member_names(value.catalog()), value.name());
    value.visit_fields(*this);
  }
  void field(const Field& field, ComponentList& value) override {
    add(field, "list of " + member_names(value.catalog()), "[]");
  }

 protected:
  void nested_list(const Field& field, const ListAccess& access) override {
    std::vector<FieldHelp> options;
    Describer inner("", options);
    access.visit_sample(inner);
    std::string keys;
    for (const FieldHelp& option : options) keys += (keys.empty() ? "" : ", ") + option.key;
    add(field, "list of {" + keys + "}", access.size() == 0 ? "[]" : "see recipe");
    for (FieldHelp& option : options) {
      option.key = join_key(join_key(prefix_, field.name), "N." + option.key);
      lines_.push_back(std::move(option));
    }
  }
  void nested(const Field& field, const std::function<void(Visitor&)>& visit_fields) override {
    Describer inner(join_key(prefix_, field.name), lines_);
    visit_fields(inner);
  }

 private:
  static std::string member_names(const Catalog& catalog) {
    std::string text;
    for (const auto& name : catalog.names()) text += (text.empty() ? "" : " | ") + name;
    return text;
  }
  void list(const Field& field, const std::string& type, bool empty) {
    add(field, field.or_item ? "one item or a " + type : type, empty ? "[]" : "see recipe");
  }
  void add(const Field& field, std::string type, std::string initial) {
    lines_.push_back(
        {join_key(prefix_, field.name), std::move(type), std::move(initial), field.help});
  }

  std::string prefix_;
  std::vector<FieldHelp>& lines_;
};

}  // namespace

std::vector<FieldHelp> describe_fields(const VisitFields& visit_fields, const std::string& prefix) {
  std::vector<FieldHelp> lines;
  Describer describer(prefix, lines);
  visit_fields(describer);
  return lines;
}

}  // namespace gallop::config
