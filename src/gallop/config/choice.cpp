#include "gallop/config/choice.h"

namespace gallop::config {

Node choice_of(const Node& name) {
  Node map;
  map.kind = Node::Kind::kMap;
  map.origin = name.origin;
  map.at_or_add("name", name.origin) = name;
  return map;
}

}  // namespace gallop::config
