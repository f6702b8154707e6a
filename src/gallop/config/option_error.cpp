#include "gallop/config/option_error.h"

#include <charconv>
#include <sstream>

namespace gallop::config {

namespace {

const Node* child_of(const Node& node, const std::string& key) {
  if (node.kind == Node::Kind::kMap) return node.find(key);
  if (node.kind != Node::Kind::kList) return nullptr;
  size_t index = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), index);
  const bool is_index = error == std::errc() && end == key.data() + key.size();
  return is_index && index < node.items.size() ? &node.items[index] : nullptr;
}

}  // namespace

Origin origin_of(const Node& written, const std::string& path) {
  const Node* node = &written;
  std::istringstream keys(path);
  for (std::string key; std::getline(keys, key, '.');) {
    if (const Node* child = child_of(*node, key)) node = child;
  }
  return node->origin;
}

void throw_with_origin(const OptionError& error, const Node& written) {
  Problems problems;
  problems.add(origin_of(written, error.path()), error.path(), error.message());
  problems.throw_if_any();
  throw error;
}

}  // namespace gallop::config
