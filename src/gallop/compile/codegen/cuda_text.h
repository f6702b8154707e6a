#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gallop/compile/codegen/cuda_plan.h"
#include "gallop/compile/codegen/source_text.h"

namespace gallop::compile {

/// What the kernels of one plan are written of: values, positions, and the elements of a group. In
/// the text, in0 is the first element of input 0, row_in0 that of the row, at_in0 that of the group
/// of kWidth neighbors, which are x_in0; n0 is the size of dimension 0, s_in0_1 input 0's stride in
/// dimension 1; outputs have out for in. k0 is the position along a dimension of rows, j1 along one
/// within a row. v3 is the value of expression 3, c3 a thread's part of a reduction, t3 of a total.
class CudaText : protected SourceText {
 protected:
  explicit CudaText(const CudaPlan& plan);

  struct Array {
    const LoopOperand* operand;
    std::string name;
    bool is_output;
    size_t index;
    int32_t value;  // Of outputs.
  };
  // The right side of an input's value.
  using Access = std::function<std::string(const Array& array)>;

  size_t dims() const;
  size_t outer_dims() const;
  const Expression& expression(int32_t at) const;
  const ValueTraits& value(int32_t at) const;
  const char* kind_of_value(int32_t at) const;
  const char* reduction(int32_t at) const;
  // Of a block's part of a total.
  const char* part_type(int32_t at) const;
  int32_t expressions() const;

  // The kernel `name`, which calls `body`.
  void write_kernel(const char* name, const char* body, uint32_t threads);
  // What the slots hold, by name.
  void declare_arguments();

  // The right side of any value; `access` makes that of an input's element.
  std::string value_text(int32_t at, const Access& access) const;
  void write_value(int32_t at, const Access& access);
  // Values for the whole loop among `needed`.
  void write_values_for_all(const std::vector<bool>& needed);
  // Numbers of the row among `needed`, with what they are made of, that are not there yet.
  void write_row_numbers(const std::vector<bool>& needed);
  void write_row_number(int32_t at);

  // Where row `row` begins.
  void write_row_start();
  // Positions in the row from the number of a group of `width` neighbors.
  void write_positions(const char* group, const char* width);
  std::string offset_in_row(const Array& array) const;
  // The right side of an input's element.
  std::string element_access(const Array& array) const;
  // The elements of a group, which `reduce` adds up, and their stores where they are known.
  void write_group(int sweep, const std::function<void()>& reduce);

  const CudaPlan& plan_;
  const LoopPlan& loop_;
  const LoopProgram& program_;
  CudaSlots slots_;
  std::vector<Array> arrays_;  // Inputs, then outputs.
  std::vector<bool> written_;  // Numbers of a row that are there.

 private:
  // What comes before the elements of a group: reading.
  void write_group_start(const std::vector<bool>& slice);

  std::set<std::string> read_;  // Arrays of the group that are there.
};

}  // namespace gallop::compile
