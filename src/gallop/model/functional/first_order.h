#pragma once

namespace gallop::model::functional {

/// Throws UsageError in a backward that records its own graph, which the kernels' gradients could
/// not be part of; `name` tells which of them.
void require_first_order(const char* name);

}  // namespace gallop::model::functional
