#pragma once

namespace gallop::model::functional {

/// Frees what a failed backward pass of this thread has left behind. Autograd's queue keeps the
/// nodes that have not run, with all the activations they saved, until a later pass takes them out.
void drop_failed_backward();

}  // namespace gallop::model::functional
