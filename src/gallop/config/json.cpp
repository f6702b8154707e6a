#include <nlohmann/json.hpp>

#include "gallop/config/node.h"
#include "gallop/config/scalar.h"

namespace gallop::config {

namespace {

nlohmann::ordered_json json_of(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return nullptr;
    case Node::Kind::kScalar:
      if (const auto flag = as_bool(node)) return *flag;
      if (const auto integer = as_integer(node)) return *integer;
      if (const auto number = as_number(node)) return *number;
      if (is_null(node)) return nullptr;
      return node.scalar;
    case Node::Kind::kList: {
      auto list = nlohmann::ordered_json::array();
      for (const auto& item : node.items) list.push_back(json_of(item));
      return list;
    }
    case Node::Kind::kMap: {
      auto map = nlohmann::ordered_json::object();
      for (const auto& entry : node.entries) map[entry.key] = json_of(entry.value);
      return map;
    }
  }
  return nullptr;
}

}  // namespace

std::string to_json(const Node& node) { return json_of(node).dump(); }

}  // namespace gallop::config
