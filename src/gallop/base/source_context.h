#pragma once

#include <string>

namespace gallop {

/// Tells the code below what this thread is executing, for messages: the line of a model's source
/// that calls an operator. Contexts nest; the innermost one counts.
class SourceContext {
 public:
  using Describe = std::string (*)(const void* what);
  /// `what` must outlive it; `describe` is called only if a message is needed.
  SourceContext(const void* what, Describe describe);
  ~SourceContext();
  SourceContext(const SourceContext&) = delete;
  SourceContext& operator=(const SourceContext&) = delete;

  /// Describes the innermost context of this thread; empty without one.
  static std::string current();

 private:
  const void* what_;
  Describe describe_;
  const SourceContext* outer_;
};

}  // namespace gallop
