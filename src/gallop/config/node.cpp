#include "gallop/config/node.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/choice.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

std::string Origin::describe() const {
  switch (source) {
    case Source::kDefault: return "default";
    case Source::kCommandLine: return "command line";
    case Source::kMeasured: return "measured";
    case Source::kFile: break;
  }
  return fmt::format("{}:{}:{}", file, line, column);
}

const Node* Node::find(std::string_view key) const {
  for (const auto& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(static_cast<const Node*>(this)->find(key));
}

Node& Node::at_or_add(std::string_view key, const Origin& key_origin) {
  if (Node* found = find(key)) return *found;
  if (kind == Kind::kNull) kind = Kind::kMap;
  entries.push_back({std::string(key), key_origin, Node()});
  return entries.back().value;
}

Node Node::make_scalar(std::string text, Origin origin) {
  Node node;
  node.kind = Kind::kScalar;
  node.scalar = std::move(text);
  node.origin = std::move(origin);
  return node;
}

void Problems::add(const Origin& origin, std::string key, std::string message) {
  problems_.push_back({origin, std::move(key), std::move(message)});
}

void Problems::throw_if_any() const {
  if (problems_.empty()) return;
  std::string text;
  for (const auto& problem : problems_) {
    if (!text.empty()) text += '\n';
    text += printable(problem.origin.describe());
    if (!problem.key.empty()) text += ": " + printable(problem.key);
    text += ": " + printable(problem.message);
  }
  throw UsageError(text);
}

namespace {

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts{""};
  for (const char c : path) {
    if (c == '.') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Whether the text may be the name of a family member.
bool is_word(const Node& node) { return !as_number(node) && !as_bool(node) && !is_null(node); }

// The list item with the index `part`, or null if that is not a number or out of range.
Node* list_item(Node& list, const std::string& part) {
  const auto index = parse_number<size_t>(part);
  return index && *index < list.items.size() ? &list.items[*index] : nullptr;
}

}  // namespace

void apply_override(Node& root, const std::string& path, Node value, Problems& problems) {
  const Origin origin = value.origin;
  Node* at = &root;
  for (const auto& part : split_path(path)) {
    if (part.empty()) {
      problems.add(origin, path, "empty name between dots");
      return;
    }
    if (at->kind == Node::Kind::kList) {
      at = list_item(*at, part);
      if (at == nullptr) {
        problems.add(origin, path, fmt::format("the list has no item '{}'", part));
        return;
      }
    } else if (at->kind == Node::Kind::kScalar && !is_word(*at)) {
      problems.add(origin, path, fmt::format("'{}' is inside a scalar", part));
      return;
    } else {
      if (at->kind == Node::Kind::kScalar) *at = choice_of(*at);
      at = &at->at_or_add(part, origin);
    }
  }
  *at = std::move(value);
}

}  // namespace gallop::config
