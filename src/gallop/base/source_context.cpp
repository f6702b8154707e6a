#include "gallop/base/source_context.h"

namespace gallop {

namespace {

thread_local const SourceContext* innermost = nullptr;

}  // namespace

SourceContext::SourceContext(const void* what, Describe describe)
    : what_(what), describe_(describe), outer_(innermost) {
  innermost = this;
}

SourceContext::~SourceContext() { innermost = outer_; }

std::string SourceContext::current() {
  return innermost == nullptr ? std::string() : innermost->describe_(innermost->what_);
}

}  // namespace gallop
