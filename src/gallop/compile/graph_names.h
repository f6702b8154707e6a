#pragma once

#include <string>
#include <vector>

#include "gallop/tensor/named_tensor.h"

namespace gallop::compile {

struct Graph;

/// Names of the tensors that a graph is given.
struct GraphNames {
  std::vector<std::string> inputs;  ///< By argument.
  NamedTensors state;               ///< By their memory; of several names for the same memory the
                                    ///< first is used.
};

/// Names of all tensors in a graph: a value is named after the node that computes it, "%12", or
/// "%12.1" if that has several results; arguments and state have their own names.
class GraphNamer {
 public:
  /// `graph` must outlive it.
  GraphNamer(const Graph& graph, const GraphNames& names);

  const std::string& name_of_buffer(int32_t buffer) const { return names_[buffer]; }

  /// The buffer's name, and how the view differs from the tensor that has the name: "%12[64x128]"
  /// has other sizes, "%12[64x128 at 4096]" begins at that element, "%12[64x128 by 1x64]" has those
  /// strides, "fc.weight^T" is transposed, and "%12[64x128]^T" is so after it got those sizes.
  std::string name_of_view(int32_t id) const;

  /// "bf16 128x16x32x32"; "nhwc" follows if a tensor of four dimensions is channels_last.
  std::string format_of_view(int32_t id) const;

 private:
  void name_state(const GraphNames& names);
  void name_values();

  const Graph& graph_;
  std::vector<std::string> names_;  // By buffer.
  std::vector<int32_t> whole_;      // By buffer: the view to which the name refers, or kNone.
};

}  // namespace gallop::compile
