#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

// Names of the leaves of a tree of tuples, lists, dicts and data classes, as in
// torch.utils._pytree.treespec_dumps().
namespace gallop::model::exported {

namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxLeaves = 65536;

// A list of as many texts as there are children.
std::vector<std::string> texts_of(const Json& json, size_t count) {
  std::vector<std::string> texts;
  if (!json.is_array() || json.size() != count) return {};
  for (const Json& item : json) {
    if (!item.is_string()) return {};
    texts.push_back(printable(item.get_ref<const std::string&>()));
  }
  return texts;
}

// The keys of a dict are its context; those of a data class are within.
std::vector<std::string> keys_of(const Json& context, size_t count) {
  std::vector<std::string> keys = texts_of(context, count);
  if (!keys.empty() || !(context.is_array() || context.is_object())) return keys;
  for (const auto& item : context.items()) {
    keys = texts_of(item.value(), count);
    if (!keys.empty()) return keys;
  }
  return keys;
}

std::string join(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

class Tree {
 public:
  explicit Tree(const Place& place) : place_(place) {}

  // The root of a treespec, which is [1, TREE].
  Json parse(const std::string& text) const {
    Json spec = parse_json(text, place_);
    if (!spec.is_array() || spec.size() != 2 || spec[0] != 1) {
      place_.fail("an unknown version of the tree");
    }
    return std::move(spec[1]);
  }

  const Json& children(const Json& tree) const {
    return list_member(tree, "children_spec", place_);
  }

  // The names of the children: keys, or positions.
  std::vector<std::string> child_names(const Json& tree) const {
    const size_t count = children(tree).size();
    std::vector<std::string> names;
    if (const Json* context = optional_member(tree, "context", place_)) {
      names =
          keys_of(context->is_string() ? parse_json(context->get_ref<const std::string&>(), place_)
                                       : *context,
                  count);
    }
    for (size_t i = names.size(); i < count; ++i) names.push_back(std::to_string(i));
    return names;
  }

  void add_leaves(const Json& tree, const std::string& path, int depth,
                  std::vector<std::string>& leaves) const {
    if (depth > kMaxDepth) place_.fail(fmt::format("a tree of over {} levels", kMaxDepth));
    if (member(tree, "type", place_).is_null()) {
      if (leaves.size() >= kMaxLeaves) place_.fail(fmt::format("over {} leaves", kMaxLeaves));
      leaves.push_back(path);
      return;
    }
    const auto names = child_names(tree);
    for (size_t i = 0; i < names.size(); ++i) {
      add_leaves(children(tree)[i], join(path, names[i]), depth + 1, leaves);
    }
  }

 private:
  const Place& place_;
};

}  // namespace

std::vector<std::string> read_input_names(const std::string& treespec,
                                          const std::vector<std::string>& positional,
                                          const Place& place) {
  const Tree tree(place);
  const Json root = tree.parse(treespec);
  if (tree.children(root).size() != 2) place.fail("not a tree of positional and named arguments");
  const Json& arguments = tree.children(root)[0];
  const Json& named = tree.children(root)[1];
  std::vector<std::string> names;
  for (size_t i = 0; i < tree.children(arguments).size(); ++i) {
    const std::string name =
        i < positional.size() ? printable(positional[i]) : fmt::format("input_{}", i);
    tree.add_leaves(tree.children(arguments)[i], name, 0, names);
  }
  const auto keys = tree.child_names(named);
  for (size_t i = 0; i < keys.size(); ++i) {
    tree.add_leaves(tree.children(named)[i], keys[i], 0, names);
  }
  return names;
}

std::vector<std::string> read_output_names(const std::string& treespec, const Place& place) {
  const Tree tree(place);
  const Json root = tree.parse(treespec);
  std::vector<std::string> names;
  tree.add_leaves(root, "", 0, names);
  if (names.size() == 1 && names[0].empty()) names[0] = "output";
  return names;
}

}  // namespace gallop::model::exported
