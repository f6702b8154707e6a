#pragma once

namespace gallop::model::functional {

/// Throws UsageError in a backward pass that records a graph (create_graph), because the kernels
/// have no second derivatives; `name` is the operator in the message.
void require_first_order(const char* name);

}  // namespace gallop::model::functional
