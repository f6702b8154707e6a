#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "gallop/base/home.h"
#include "gallop/base/text.h"
#include "gallop/config/choice.h"
#include "gallop/config/component.h"
#include "gallop/config/field_text.h"
#include "gallop/config/resolve.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

namespace {

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

std::string absolute_path(const std::string& path, const Origin& origin) {
  if (path.empty()) return path;
  const bool is_of_file = origin.source == Origin::Source::kFile;
  const fs::path folder = is_of_file ? fs::path(origin.file).parent_path() : fs::path();
  return fs::absolute(folder / expand_home(path)).lexically_normal().string();
}

class Reader final : public Visitor {
 public:
  /// `first`: a scalar in place of a map, for the first field.
  Reader(const Node& map, std::string prefix, Problems& problems, const Node* first = nullptr)
      : map_(map), prefix_(std::move(prefix)), problems_(problems), first_(first) {}

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
    chooses_ |= field.name == std::string_view("name") && !field.choices.empty();
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
    if (text && field.is_path) text = absolute_path(*text, node->origin);
    store(field, *node, text, "a string", value);
  }
  void field(const Field& field, std::vector<int64_t>& value) override {
    read_list(field, "integers", value, [&](const Node& item) {
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
    read_list(field, "texts", value, [&](const Node& item) -> std::optional<std::string> {
      if (item.kind != Node::Kind::kScalar) return std::nullopt;
      const std::string wrong = field.check ? field.check(item.scalar) : "";
      if (!wrong.empty()) problem(field, item, wrong);
      return item.scalar;
    });
  }
  void field(const Field& field, std::optional<int64_t>& value) override {
    read_optional(field, value, [](const Node& node) { return as_integer(node); });
  }
  void field(const Field& field, std::optional<double>& value) override {
    read_optional(field, value, [](const Node& node) { return as_number(node); });
  }

  void field(const Field& field, Component& value) override {
    // A member whose options include a family of the same name.
    const bool is_taken = std::find(known_.begin(), known_.end(), field.name) != known_.end();
    if (const Node* const node = map_.find(field.name); is_taken && node != nullptr) {
      problem(field, *node, fmt::format("{} cannot be nested within itself", shown(*node)));
      unknown_allowed_ = true;
      return;
    }
    if (const Node* node = take(field)) {
      if (node->kind != Node::Kind::kScalar || !value.catalog().find(node->scalar)) {
        problem(field, *node,
                node->kind == Node::Kind::kScalar
                    ? unknown_name(value.catalog().family(), node->scalar, value.catalog().names())
                    : fmt::format("must be a name, not {}", shown(*node)));
        unknown_allowed_ = true;  // the other keys belong to a member that is not known
        chooses_ |= field.name == std::string_view("name");
        return;
      }
      value = Component(value.catalog(), node->scalar);
    }
    chooses_ |= field.name == std::string_view("name");
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
    const Node* node = take(field);
    if (node != nullptr && node->kind != Node::Kind::kMap && !is_null(*node)) {
      if (read_choice(field, *node, visit_fields)) return;
      problem(field, *node, fmt::format("must be a map of options, not {}", shown(*node)));
      return;
    }
    Reader reader(node != nullptr && node->kind == Node::Kind::kMap ? *node : empty_map(),
                  key_of(field), problems_);
    visit_fields(reader);
    reader.check_unknown();
  }

 private:
  static const Node& empty_map() {
    static const Node kEmpty = [] {
      Node node;
      node.kind = Node::Kind::kMap;
      return node;
    }();
    return kEmpty;
  }

  // Reads a bare name for a section that selects a family member; false if it does not.
  bool read_choice(const Field& field, const Node& node,
                   const std::function<void(Visitor&)>& visit_fields) {
    if (node.kind != Node::Kind::kScalar) return false;
    const Node map = choice_of(node);
    Problems problems;
    Reader reader(map, key_of(field), problems);
    visit_fields(reader);
    if (!reader.chooses_) return false;
    reader.check_unknown();
    for (const Problem& one : problems.list()) problems_.add(one.origin, one.key, one.message);
    return true;
  }

  const Node* take(const Field& field) {
    known_.emplace_back(field.name);
    if (first_ != nullptr && known_.size() == 1) return first_;
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
    if (field.or_auto && is_auto(node)) return;
    const bool allowed = read && in_range(field, static_cast<double>(*read));
    const char* noun = std::is_integral_v<T> ? "an integer" : "a number";
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
    const bool is_item = field.or_item && node->kind == Node::Kind::kScalar;
    if (node->kind != Node::Kind::kList && !is_item) {
      problem(field, *node, fmt::format("must be a list of {}, not {}", noun, shown(*node)));
      return;
    }
    std::vector<T> read;
    for (const Node& item : is_item ? std::vector<Node>{*node} : node->items) {
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

  // Parses `name`, `{name: {options}}`, or `{name: VALUE}` with only the first option.
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
      const bool is_map = options.kind == Node::Kind::kMap;
      if (is_map || !is_null(options)) {
        Reader reader(is_map ? options : empty_map(), join_key(key, name), problems_,
                      is_map ? nullptr : &options);
        component.visit_fields(reader);
        reader.check_unknown();
        if (!is_map && reader.known_.empty()) {
          problems_.add(options.origin, join_key(key, name),
                        fmt::format("has no options, but {} is given", shown(options)));
        }
      }
    }
    list.items.push_back(std::move(component));
  }

  const Node& map_;
  std::string prefix_;
  Problems& problems_;
  const Node* first_;
  std::vector<std::string> known_;
  bool unknown_allowed_ = false;
  bool chooses_ = false;  // Selects a family member, or one of several choices, by name.
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

}  // namespace gallop::config
