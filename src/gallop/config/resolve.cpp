#include "gallop/config/resolve.h"

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/config/component.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

namespace {

std::string join_key(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::string allowed_range(const Field& field, const char* noun) {
  std::string text = noun;
  if (field.min) {
    text +=
        fmt::format(" {} {}", field.above_min ? "above" : "of at least", number_text(*field.min));
  }
  if (field.max) {
    text += fmt::format("{} {} {}", field.min ? " and" : "", field.below_max ? "below" : "at most",
                        number_text(*field.max));
  }
  return text;
}

bool in_range(const Field& field, double value) {
  if (field.min && (field.above_min ? value <= *field.min : value < *field.min)) return false;
  if (field.max && (field.below_max ? value >= *field.max : value > *field.max)) return false;
  return true;
}

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return "nothing";
    case Node::Kind::kScalar: return "'" + node.scalar + "'";
    case Node::Kind::kList: return "a list";
    case Node::Kind::kMap: return "a map";
  }
  return {};
}

std::string unknown_name(const char* what, const std::string& name,
                         const std::vector<std::string>& names) {
  std::string text = fmt::format("unknown {} '{}'", what, name);
  const std::string nearest = nearest_name(name, names);
  text += nearest.empty() ? "." : fmt::format("; did you mean '{}'?", nearest);
  return text + fmt::format(" Known: {}", join_names(names, "and"));
}

class Reader final : public Visitor {
 public:
  Reader(const Node& map, std::string prefix, Problems& problems)
      : map_(map), prefix_(std::move(prefix)), problems_(problems) {}

  void field(const Field& field, bool& value) override {
    if (const Node* node = take(field)) {
      store(field, *node, as_bool(*node), "true or false", value);
    }
  }
  void field(const Field& field, int64_t& value) override {
    if (const Node* node = take(field)) read_number(field, *node, as_integer(*node), value);
  }
  void field(const Field& field, double& value) override {
    if (const Node* node = take(field)) read_number(field, *node, as_number(*node), value);
  }
  void field(const Field& field, std::string& value) override {
    const Node* node = take(field);
    if (node == nullptr) return;
    std::optional<std::string> text;
    if (node->kind == Node::Kind::kScalar) text = node->scalar;
    if (text && !field.choices.empty() &&
        std::find(field.choices.begin(), field.choices.end(), *text) == field.choices.end()) {
      problem(field, *node, unknown_name("value", *text, field.choices));
      return;
    }
    if (const std::string wrong = text && field.check ? field.check(*text) : ""; !wrong.empty()) {
      problem(field, *node, wrong);
      return;
    }
    store(field, *node, text, "text", value);
  }
  void field(const Field& field, std::vector<int64_t>& value) override {
    read_list(field, "whole numbers", value, [&](const Node& item) {
      const auto number = as_integer(item);
      return number && in_range(field, static_cast<double>(*number)) ? number : std::nullopt;
    });
  }
  void field(const Field& field, std::vector<double>& value) override {
    read_list(field, "numbers", value, [&](const Node& item) {
      const auto number = as_number(item);
      return number && in_range(field, *number) ? number : std::nullopt;
    });
  }
  void field(const Field& field, std::vector<std::string>& value) override {
    read_list(field, "texts", value, [](const Node& item) {
      return item.kind == Node::Kind::kScalar ? std::optional(item.scalar) : std::nullopt;
    });
  }
  void field(const Field& field, std::optional<int64_t>& value) override {
    read_optional(field, value, [](const Node& node) { return as_integer(node); });
  }
  void field(const Field& field, std::optional<double>& value) override {
    read_optional(field, value, [](const Node& node) { return as_number(node); });
  }

  void field(const Field& field, Component& value) override {
    if (const Node* node = take(field)) {
      if (node->kind != Node::Kind::kScalar || !value.catalog().find(node->scalar)) {
        problem(field, *node,
                node->kind == Node::Kind::kScalar
                    ? unknown_name(value.catalog().family(), node->scalar, value.catalog().names())
                    : fmt::format("must be a name, not {}", shown(*node)));
        unknown_allowed_ = true;  // the other keys belong to a member that is not known
        return;
      }
      value = Component(value.catalog(), node->scalar);
    }
    value.visit_fields(*this);
  }

  void field(const Field& field, ComponentList& value) override {
    const Node* node = take(field);
    if (node == nullptr) return;
    value.items.clear();
    if (is_null(*node)) return;
    if (node->kind != Node::Kind::kList) {
      problem(field, *node,
              fmt::format("must be a list such as [{{{}: {{}}}}], not {}",
                          value.catalog().names().front(), shown(*node)));
      return;
    }
    for (size_t i = 0; i < node->items.size(); ++i) {
      read_item(node->items[i], join_key(key_of(field), std::to_string(i)), value);
    }
  }

  void check_unknown() {
    if (unknown_allowed_) return;
    for (const auto& entry : map_.entries) {
      if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
      problems_.add(entry.origin, join_key(prefix_, entry.key),
                    unknown_name("key", entry.key, known_));
    }
  }

 protected:
  void nested_list(const Field& field, const ListAccess& list) override {
    const Node* node = take(field);
    if (node == nullptr) return;
    list.resize(0);
    if (is_null(*node)) return;
    if (node->kind != Node::Kind::kList) {
      problem(field, *node, fmt::format("must be a list of maps, not {}", shown(*node)));
      return;
    }
    list.resize(node->items.size());
    for (size_t i = 0; i < node->items.size(); ++i) {
      const Node& item = node->items[i];
      const std::string key = join_key(key_of(field), std::to_string(i));
      if (item.kind != Node::Kind::kMap) {
        problems_.add(item.origin, key,
                      fmt::format("must be a map of options, not {}", shown(item)));
        continue;
      }
      Reader reader(item, key, problems_);
      list.visit_item(i, reader);
      reader.check_unknown();
    }
  }
  void nested(const Field& field, const std::function<void(Visitor&)>& visit_fields) override {
    static const Node kEmpty = [] {
      Node node;
      node.kind = Node::Kind::kMap;
      return node;
    }();
    const Node* node = take(field);
    if (node != nullptr && node->kind != Node::Kind::kMap && !is_null(*node)) {
      problem(field, *node, fmt::format("must be a map of options, not {}", shown(*node)));
      return;
    }
    Reader reader(node != nullptr && node->kind == Node::Kind::kMap ? *node : kEmpty, key_of(field),
                  problems_);
    visit_fields(reader);
    reader.check_unknown();
  }

 private:
  const Node* take(const Field& field) {
    known_.emplace_back(field.name);
    return map_.find(field.name);
  }
  std::string key_of(const Field& field) const { return join_key(prefix_, field.name); }
  void problem(const Field& field, const Node& node, std::string message) {
    problems_.add(node.origin, key_of(field), std::move(message));
  }

  template <typename T>
  void store(const Field& field, const Node& node, const std::optional<T>& read,
             const std::string& allowed, T& value) {
    if (read) {
      value = *read;
    } else {
      problem(field, node, fmt::format("must be {}, not {}", allowed, shown(node)));
    }
  }

  template <typename T>
  void read_number(const Field& field, const Node& node, const std::optional<T>& read, T& value) {
    const bool allowed = read && in_range(field, static_cast<double>(*read));
    const char* noun = std::is_integral_v<T> ? "a whole number" : "a number";
    store(field, node, allowed ? read : std::optional<T>(), allowed_range(field, noun), value);
  }

  template <typename T, typename Convert>
  void read_optional(const Field& field, std::optional<T>& value, Convert convert) {
    const Node* node = take(field);
    if (node == nullptr) return;
    if (is_null(*node) || (node->kind == Node::Kind::kScalar && node->scalar == "none")) {
      value.reset();
      return;
    }
    T read{};
    const size_t before = problems_.list().size();
    read_number(field, *node, convert(*node), read);
    if (problems_.list().size() == before) value = read;
  }

  template <typename T, typename Convert>
  void read_list(const Field& field, const char* noun, std::vector<T>& value, Convert convert) {
    const Node* node = take(field);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kList) {
      problem(field, *node, fmt::format("must be a list of {}, not {}", noun, shown(*node)));
      return;
    }
    std::vector<T> read;
    for (const auto& item : node->items) {
      if (auto converted = convert(item)) {
        read.push_back(std::move(*converted));
      } else {
        problems_.add(item.origin, key_of(field),
                      fmt::format("each must be one of the {}, not {}", allowed_range(field, noun),
                                  shown(item)));
      }
    }
    value = std::move(read);
  }

  // `name` or `{name: {options}}`.
  void read_item(const Node& item, const std::string& key, ComponentList& list) {
    const bool is_name = item.kind == Node::Kind::kScalar;
    if (!is_name && (item.kind != Node::Kind::kMap || item.entries.size() != 1)) {
      problems_.add(item.origin, key,
                    fmt::format("must be one name with its options, such as {}: {{}}",
                                list.catalog().names().front()));
      return;
    }
    const std::string& name = is_name ? item.scalar : item.entries.front().key;
    if (list.catalog().find(name) == nullptr) {
      problems_.add(item.origin, key,
                    unknown_name(list.catalog().family(), name, list.catalog().names()));
      return;
    }
    Component component(list.catalog(), name);
    if (!is_name) {
      const Node& options = item.entries.front().value;
      if (options.kind == Node::Kind::kMap) {
        Reader reader(options, join_key(key, name), problems_);
        component.visit_fields(reader);
        reader.check_unknown();
      } else if (!is_null(options)) {
        problems_.add(options.origin, join_key(key, name),
                      fmt::format("must be a map of options, not {}", shown(options)));
      }
    }
    list.items.push_back(std::move(component));
  }

  const Node& map_;
  std::string prefix_;
  Problems& problems_;
  std::vector<std::string> known_;
  bool unknown_allowed_ = false;
};

class Writer final : public Visitor {
 public:
  explicit Writer(const Node* written) : written_(written) { map_.kind = Node::Kind::kMap; }
  Node take() { return std::move(map_); }

  void field(const Field& field, bool& value) override { put(field, value ? "true" : "false"); }
  void field(const Field& field, int64_t& value) override { put(field, std::to_string(value)); }
  void field(const Field& field, double& value) override { put(field, number_text(value)); }
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
    Writer inner(written_ != nullptr ? written_->find(field.name) : nullptr);
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

class Describer final : public Visitor {
 public:
  Describer(std::string prefix, std::vector<FieldHelp>& lines)
      : prefix_(std::move(prefix)), lines_(lines) {}

  void field(const Field& field, bool& value) override {
    add(field, "true | false", value ? "true" : "false");
  }
  void field(const Field& field, int64_t& value) override {
    add(field, allowed_range(field, "whole number"), std::to_string(value));
  }
  void field(const Field& field, double& value) override {
    add(field, allowed_range(field, "number"), number_text(value));
  }
  void field(const Field& field, std::string& value) override {
    std::string type = "text";
    if (!field.choices.empty()) {
      type.clear();
      for (const auto& choice : field.choices) type += (type.empty() ? "" : " | ") + choice;
    }
    add(field, type, value.empty() ? "none" : value);
  }
  void field(const Field& field, std::vector<int64_t>& value) override {
    list(field, "list of whole numbers", value.empty());
  }
  void field(const Field& field, std::vector<double>& value) override {
    list(field, "list of numbers", value.empty());
  }
  void field(const Field& field, std::vector<std::string>& value) override {
    list(field, "list of texts", value.empty());
  }
  void field(const Field& field, std::optional<int64_t>& value) override {
    add(field, allowed_range(field, "whole number") + " | none",
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
  void list(const Field& field, const char* type, bool empty) {
    add(field, type, empty ? "[]" : "see recipe");
  }
  void add(const Field& field, std::string type, std::string initial) {
    lines_.push_back(
        {join_key(prefix_, field.name), std::move(type), std::move(initial), field.help});
  }

  std::string prefix_;
  std::vector<FieldHelp>& lines_;
};

}  // namespace

void read_fields(const Node& map, const VisitFields& visit_fields, Problems& problems) {
  if (map.kind != Node::Kind::kMap && !is_null(map)) {
    problems.add(map.origin, "", fmt::format("a recipe is a map of sections, not {}", shown(map)));
    return;
  }
  Reader reader(map, "", problems);
  visit_fields(reader);
  reader.check_unknown();
}

Node write_fields(const VisitFields& visit_fields, const Node& written) {
  Writer writer(&written);
  visit_fields(writer);
  return writer.take();
}

std::vector<FieldHelp> describe_fields(const VisitFields& visit_fields, const std::string& prefix) {
  std::vector<FieldHelp> lines;
  Describer describer(prefix, lines);
  visit_fields(describer);
  return lines;
}

}  // namespace gallop::config
