#include "gallop/train/operator_spans.h"

#include <memory>

#include <ATen/record_function.h>

#include "gallop/base/trace.h"

namespace gallop::train {

namespace {

struct Begin final : at::ObserverContext {
  int64_t ns = 0;
};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& /*function*/) {
  if (!is_tracing()) return nullptr;
  auto context = std::make_unique<Begin>();
  context->ns = monotonic_nanoseconds();
  return context;
}

void end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  record_span(SpanKind::kOperator, function.name(), static_cast<Begin*>(context)->ns,
              monotonic_nanoseconds());
}

}  // namespace

OperatorSpans::OperatorSpans()
    : handle_(at::addGlobalCallback(
          at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}))) {}

OperatorSpans::~OperatorSpans() { at::removeCallback(handle_); }

}  // namespace gallop::train
