#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "gallop/compile/passes/matcher.h"

namespace gallop::compile::passes {

/// Calls of ATen's operators that are to stand in the place of one node. Each gives a new tensor,
/// or the one named by `into`, a result of that node: of the same layout, or of another shape with
/// as many elements, of which the memory is taken.
class Calls {
 public:
  Calls(Matcher& matcher, int64_t node);

  // Formats that meet give the wider one, as in LibTorch.
  ViewId add(ViewId a, ViewId b, ViewId into = kNone);
  ViewId add(ViewId a, double b);
  ViewId subtract(ViewId a, ViewId b);
  ViewId multiply(ViewId a, ViewId b);
  ViewId multiply(ViewId a, double b);
  ViewId at_least(ViewId a, double b);
  ViewId rsqrt(ViewId a, ViewId into = kNone);
  ViewId cast(ViewId a, at::ScalarType type, ViewId into = kNone);
  /// Over these dimensions, in fp32.
  ViewId mean(ViewId a, const std::vector<int64_t>& dims, ViewId into = kNone);
  ViewId sum(ViewId a, const std::vector<int64_t>& dims, bool keep, ViewId into = kNone);

  /// a = a + share * (b - a) for each pair, in place.
  void move_towards(std::initializer_list<std::pair<ViewId, ViewId>> pairs, double share);

  View view(ViewId id) const { return matcher_.view(id); }
  ViewId intern(const View& view) { return matcher_.intern(view); }

  /// Nothing where a result has not the layout that is wanted.
  std::optional<Rewrite> finish() &&;

 private:
  ViewId call(const char* op, const char* overload, std::vector<Operand> arguments,
              ViewId into = kNone);
  /// Gives a view its memory. False where it does not fit.
  bool place(View& made, ViewId into);

  Matcher& matcher_;
  int64_t node_;
  Rewrite change_;
  bool failed_ = false;
};

}  // namespace gallop::compile::passes
