#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// ATen calls that replace one node. Each creates a new tensor, or writes the one named by `into`,
/// a result of that node: of the same layout, or of another shape with as many elements, whose
/// memory is reused.
class Calls {
 public:
  Calls(Matcher& matcher, int64_t node);

  // Operands of different types are promoted to the wider one, as in LibTorch.
  ViewId add(ViewId a, ViewId b, ViewId into = kNone);
  ViewId add(ViewId a, double b);
  ViewId subtract(ViewId a, ViewId b);
  ViewId multiply(ViewId a, ViewId b);
  ViewId multiply(ViewId a, double b);
  ViewId at_least(ViewId a, double b);
  ViewId rsqrt(ViewId a, ViewId into = kNone);
  ViewId cast(ViewId a, at::ScalarType type, ViewId into = kNone);
  /// `stack` or `cat` of tensors along a dimension.
  ViewId joined(const std::vector<ViewId>& parts, int64_t dim, bool stacks, ViewId into = kNone);
  /// Reduces over these dimensions, in fp32.
  ViewId mean(ViewId a, const std::vector<int64_t>& dims, ViewId into = kNone);
  ViewId sum(ViewId a, const std::vector<int64_t>& dims, bool keep, ViewId into = kNone);

  /// a = a + share * (b - a) for each pair, in place (lerp).
  void move_towards(std::initializer_list<std::pair<ViewId, ViewId>> pairs, double share);

  View view(ViewId id) const { return matcher_.view(id); }
  ViewId intern(const View& view) { return matcher_.intern(view); }

  /// Returns the rewrite; nothing if a result does not have the required layout.
  std::optional<Rewrite> finish() &&;

 private:
  ViewId call(const char* op, const char* overload, std::vector<Operand> arguments,
              ViewId into = kNone);
  /// Assigns memory to a view. False if it does not fit.
  bool place(View& made, ViewId into);

  Matcher& matcher_;
  int64_t node_;
  Rewrite change_;
  bool failed_ = false;
};

}  // namespace gallop::compile::passes
