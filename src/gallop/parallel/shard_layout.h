#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "gallop/optim/optimizer.h"
#include "gallop/tensor/logical_tensor.h"

namespace gallop::parallel {

/// A parameter as far as its division among processes depends on it.
struct ParameterShape {
  std::string name;
  int64_t elements = 0;
  c10::ScalarType type = c10::kFloat;
  bool is_trained = true;
  optim::UpdateUnit unit{};
  size_t group = 0;  ///< Only parameters of one group share a bucket.
  /// Parameters of one kind are divided equally by themselves, whatever there is of the other.
  bool is_part = false;
};

/// Which process updates which elements of each parameter, and how gradients lie in buckets so that
/// what a process updates is one part of each bucket.
///
/// Parameters that are updated as a whole get owners by cost, the most expensive first, each the
/// process with the least so far, unless it would have more than 1.3 times the mean of elements.
/// Others lie in buckets that are cut at multiples of kernel::kNormChunk elements of a parameter:
/// the norm of gradients is then added up as in one process, and blocks of 8-bit states are whole.
/// A cut that is not where it should be is made up for by those of later buckets.
class ShardLayout {
 public:
  using Part = LogicalTensor::Part;

  struct Bucket {
    bool is_trained = true;
    std::vector<size_t> parameters;  ///< In the order of their places.
    std::vector<int64_t> offsets;    ///< Of each, in elements.
    std::vector<int64_t> sizes;      ///< The elements of each process, in order of ranks.
  };

  /// `order`: indices of parameters in the order in which their gradients become available, those
  /// of a group together. A bucket has parameters of one data type and one kind of unit, and is
  /// closed before it would exceed `bucket_bytes`. Buckets of parameters that are not trained come
  /// last.
  ShardLayout(const std::vector<ParameterShape>& parameters, const std::vector<size_t>& order,
              int64_t bucket_bytes, int processes);

  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// The parts of a parameter that have elements, in order.
  const std::vector<Part>& parts(size_t parameter) const { return parts_[parameter]; }
  /// The part of a rank; without elements if it has none.
  Part part_of(size_t parameter, int rank) const;
  /// The number of elements that a rank updates, of trained parameters and of others.
  int64_t elements_of(int rank) const;

 private:
  void find_owners(const std::vector<ParameterShape>& parameters);
  void fill_buckets(const std::vector<ParameterShape>& parameters, const std::vector<size_t>& order,
                    int64_t bucket_bytes);
  void place(Bucket& bucket, const std::vector<ParameterShape>& parameters);
  void cut(Bucket& bucket, int64_t elements, const std::vector<ParameterShape>& parameters);

  int processes_;
  std::vector<int> owners_;  // Owner of each parameter; -1 for those that are divided.
  std::vector<Bucket> buckets_;
  std::vector<std::vector<Part>> parts_;  // Parts of each parameter.
  // Elements of each process in the buckets that were cut, of each kind.
  std::array<std::vector<int64_t>, 2> cut_so_far_;
};

}  // namespace gallop::parallel
