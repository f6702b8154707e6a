#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <ATen/core/dispatch/Dispatcher.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

using Names = std::unordered_set<std::string>;

/// Follows, node by node, which tensors share memory with which of some of a graph's inputs, by the
/// alias annotations of the operators' schemas.
class Aliases {
 public:
  explicit Aliases(const Names& inputs);

  /// Adds the results of an operator or region that are views. Returns whether it writes any of the
  /// memory; running statistics that batch norm updates count in written() alone.
  bool add(const Node& node);
  bool contains(const std::string& name) const { return roots_.contains(name); }

  /// Counts the inputs that the tensor shares memory with as written.
  void mark_written(const std::string& name);
  /// Whether the tensor shares memory with an input that was written.
  bool is_written(const std::string& name) const;
  const Names& written() const { return written_; }

 private:
  bool add_region(const Node& node);
  void add_statistics(const Node& node);
  void add_views(const std::string& tensor, const Node& node);

  std::unordered_map<std::string, Names> roots_;  // The inputs that each tensor shares memory with.
  Names written_;
};

/// The name of the tensor that an argument names; empty if it names none.
std::string tensor_name_of(const Argument& argument);

/// Calls `visit` with each argument of an operator that it writes, or whose memory its results may
/// share: by the schema, or as dropout that does nothing returns its input.
void visit_aliased(const Node& node, const c10::OperatorHandle& op,
                   const std::function<void(const Argument& argument, bool writes)>& visit);

/// Whether the operator updates running statistics, although its schema does not say so.
bool updates_statistics(const Node& node);

/// Whether the subgraphs of a region write any of its arguments.
bool writes_arguments(const Node& region);

/// Those of a program's inputs of a kind that it writes in place, also as running statistics of
/// batch norm: their names in InputSpec. If a region writes one of its arguments, all of them count
/// as written.
Names written_inputs(const Program& program, InputSpec::Kind kind);

}  // namespace gallop::model::exported
