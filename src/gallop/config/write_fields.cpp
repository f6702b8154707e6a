#include "gallop/config/choice.h"
#include "gallop/config/component.h"
#include "gallop/config/resolve.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

namespace {

class Writer final : public Visitor {
 public:
  explicit Writer(const Node* written) : written_(written) { map_.kind = Node::Kind::kMap; }
  Node take() { return std::move(map_); }

  void field(const Field& field, bool& value) override { put(field, value ? "true" : "false"); }
  void field(const Field& field, int64_t& value) override {
    put_number(field, std::to_string(value));
  }
  void field(const Field& field, double& value) override { put_number(field, number_text(value)); }
  void field(const Field& field, std::string& value) override { put(field, value); }
  void field(const Field& field, std::vector<int64_t>& value) override {
    put_list(field, value, [](int64_t item) { return std::to_string(item); });
  }
  void field(const Field& field, std::vector<double>& value) override {
    put_list(field, value, [](double item) { return number_text(item); });
  }
  void field(const Field& field, std::vector<std::string>& value) override {
    put_list(field, value, [](const std::string& item) { return item; });
  }
  void field(const Field& field, std::optional<int64_t>& value) override {
    put(field, value ? std::to_string(*value) : "none");
  }
  void field(const Field& field, std::optional<double>& value) override {
    put(field, value ? number_text(*value) : "none");
  }
  void field(const Field& field, Component& value) override {
    put(field, value.name());
    value.visit_fields(*this);
  }
  void field(const Field& field, ComponentList& value) override {
    Node list;
    list.kind = Node::Kind::kList;
    list.origin = origin_of(field.name);
    for (auto& component : value.items) {
      Writer options(nullptr);
      component.visit_fields(options);
      Node item;
      item.kind = Node::Kind::kMap;
      item.at_or_add(component.name(), {}) = options.take();
      list.items.push_back(std::move(item));
    }
    map_.at_or_add(field.name, {}) = std::move(list);
  }

 protected:
  void nested_list(const Field& field, const ListAccess& access) override {
    const Node* written = written_ != nullptr ? written_->find(field.name) : nullptr;
    Node list;
    list.kind = Node::Kind::kList;
    list.origin = origin_of(field.name);
    for (size_t i = 0; i < access.size(); ++i) {
      Writer item(written != nullptr && i < written->items.size() ? &written->items[i] : nullptr);
      access.visit_item(i, item);
      list.items.push_back(item.take());
    }
    map_.at_or_add(field.name, {}) = std::move(list);
  }
  void nested(const Field& field, const std::function<void(Visitor&)>& visit_fields) override {
    const Node* written = written_ != nullptr ? written_->find(field.name) : nullptr;
    const bool is_name = written != nullptr && written->kind == Node::Kind::kScalar;
    const Node choice = is_name ? choice_of(*written) : Node();
    Writer inner(is_name ? &choice : written);
    visit_fields(inner);
    map_.at_or_add(field.name, {}) = inner.take();
  }

 private:
  Origin origin_of(const char* name) const {
    const Node* node = written_ != nullptr ? written_->find(name) : nullptr;
    return node != nullptr ? node->origin : Origin();
  }
  void put(const Field& field, std::string text) {
    map_.at_or_add(field.name, {}) = Node::make_scalar(std::move(text), origin_of(field.name));
  }
  void put_number(const Field& field, const std::string& text) {
    const Node* node = field.or_auto && written_ != nullptr ? written_->find(field.name) : nullptr;
    put(field, node != nullptr && is_auto(*node) ? node->scalar : text);
  }
  template <typename T, typename Convert>
  void put_list(const Field& field, const std::vector<T>& values, Convert convert) {
    Node list;
    list.kind = Node::Kind::kList;
    list.origin = origin_of(field.name);
    for (const auto& value : values) list.items.push_back(Node::make_scalar(convert(value)));
    map_.at_or_add(field.name, {}) = std::move(list);
  }

  const Node* written_;
  Node map_;
};

}  // namespace

Node write_fields(const VisitFields& visit_fields, const Node& written) {
  Writer writer(&written);
  visit_fields(writer);
  return writer.take();
}

}  // namespace gallop::config
