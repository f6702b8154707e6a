#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "gallop/compile/codegen/cuda_plan.h"
#include "gallop/compile/codegen/source_text.h"

namespace gallop::compile {

/// The text of values, positions and the elements of a group, as kernels of one plan use them. In
/// the text, in0 is the first element of input 0, row_in0 that of the row, at_in0 that of the group
/// of kWidth elements, which are x_in0; n0 is the size of dimension 0, s_in0_1 input 0's stride in
/// dimension 1; outputs have "out" for "in". k0 is the position along a dimension of rows, j1
/// along one within a row. v3 is expression 3, c3 a thread's part of a reduction, t3 of a total.
class CudaText : protected SourceText {
 protected:
  explicit CudaText(const CudaPlan& plan);

  struct Array {
    const LoopOperand* operand;
    std::string name;
    bool is_output;
    size_t index;
    int32_t value;  // The expression that an output stores.
  };
  // The expression of an input's element.
  using Access = std::function<std::string(const Array& array)>;

  size_t dims() const;
  size_t outer_dims() const;
  const Expression& expression(int32_t at) const;
  const ValueTraits& value(int32_t at) const;
  const char* kind_of_value(int32_t at) const;
  const char* reduction(int32_t at) const;
  // The type of a block's partial total.
  const char* part_type(int32_t at) const;
  int32_t expressions() const;

  // Writes the kernel `name`, which calls `body`, for blocks of so many threads.
  void write_kernel(const char* name, const char* body, const std::string& bounds);
  // Declares the contents of the slots by name.
  void declare_arguments();

  // The expression of any value; `access` provides that of an input's element.
  std::string value_text(int32_t at, const Access& access) const;
  void write_value(int32_t at, const Access& access);
  // Writes those of the values for the whole loop that are `needed`.
  void write_values_for_all(const std::vector<bool>& needed);
  // Writes those scalars of the row that are `needed` but not written yet, with their operands.
  void write_row_numbers(const std::vector<bool>& needed);
  void write_row_number(int32_t at);

  // Whether an array differs between rows.
  bool varies_by_row(const Array& array) const;
  // Writes the start address of row `row` in each array.
  void write_row_start();
  // Writes positions in the row, from the index of an element or of a group of kWidth of them.
  void write_positions(const char* place, bool is_group);
  std::string offset_in_row(const Array& array) const;
  // The expression of an input's element.
  std::string element_access(const Array& array) const;
  // The function that stores an output's element.
  const char* writer_of(const Array& array);
  // Writes the elements of a group, which `reduce` accumulates, and their stores once computed.
  void write_group(int sweep, const std::function<void()>& reduce);
  // Writes the loads of those elements of a group that are the same in all rows, for all turns.
  void write_shared_loads();
  // Writes kTurns groups of the only sweep, all of which are loaded before the first is computed.
  // `start` writes the position of a turn.
  void write_turns(const std::function<void()>& start, const std::function<void()>& reduce);

  const CudaPlan& plan_;
  const LoopPlan& loop_;
  const LoopProgram& program_;
  CudaSlots slots_;
  std::vector<Array> arrays_;  // Inputs, then outputs.
  std::vector<bool> written_;  // By expression: whether the row's scalar is written.

 private:
  // Writes the position `name` along a dimension, and returns what counts those outside of it.
  std::string write_position(const char* name, size_t dim, const std::string& of);
  // Writes the loads that precede the elements of a group.
  void write_group_start(const std::vector<bool>& slice);
  // The inputs that are read as elements or scalars of a row, each once.
  std::vector<const Array*> inputs_of(const std::vector<bool>& slice, Level level) const;
  // The group's elements or number, at the pointer `at`; empty if they are loaded one by one.
  std::string group_load(const Array& array) const;
  std::string group_type(const Array& array) const;

  ExactValues exact_in_bf16_;
  std::set<std::string> shared_;  // Arrays that are loaded for all turns,
  std::set<std::string> ahead_;   // and for each turn before the first is computed.
};

}  // namespace gallop::compile
