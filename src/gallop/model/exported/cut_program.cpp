#include "gallop/model/exported/cut_program.h"

#include <algorithm>
#include <unordered_map>

#include "gallop/model/exported/node_values.h"

namespace gallop::model::exported {

namespace {

// Whether the program changes what no process of a pipeline could give to the others: its inputs,
// constants, and buffers that are not in checkpoints.
bool has_hidden_state(const Program& program) {
  if (!written_inputs(program, InputSpec::Kind::kUserInput).empty() ||
      !written_inputs(program, InputSpec::Kind::kTensorConstant).empty()) {
    return true;
  }
  const Names written = written_inputs(program, InputSpec::Kind::kBuffer);
  return std::any_of(program.inputs.begin(), program.inputs.end(), [&](const InputSpec& input) {
    return input.kind == InputSpec::Kind::kBuffer && !input.is_persistent &&
           written.contains(input.name);
  });
}

// The inputs of the graph that are at hand in every process and never change.
Names given_inputs(const Program& program) {
  const Names written = written_inputs(program, InputSpec::Kind::kBuffer);
  Names given;
  for (const InputSpec& input : program.inputs) {
    if (input.kind == InputSpec::Kind::kParameter) continue;
    if (input.kind == InputSpec::Kind::kBuffer && written.contains(input.name)) continue;
    visit_values(input.value, [&](const std::string& name, bool) { given.insert(name); });
  }
  return given;
}

std::vector<std::string> names_of_outputs(const RunnableProgram& program) {
  std::vector<std::string> names;
  for (const size_t output : program.outputs_read()) {
    names.push_back(tensor_name_of(program.program().graph.outputs[output]));
  }
  return names;
}

}  // namespace

CutProgram::CutProgram(const RunnableProgram& program,
                       const std::map<std::string, at::Tensor>& tensors)
    : program_(program),
      parts_(program.program().graph, given_inputs(program.program()), names_of_outputs(program)) {
  for (const InputSpec& input : program.program().inputs) {
    const auto found = tensors.find(input.name);
    if (found == tensors.end() || input.kind == InputSpec::Kind::kUserInput) continue;
    states_[tensor_name_of(input.value)] = {
        .tensor = found->second.unsafeGetTensorImpl(),
        .is_parameter = input.kind == InputSpec::Kind::kParameter};
  }
  if (has_hidden_state(program.program())) parts_.merge(0, parts_.size());
  while (merge_sharing_blocks()) {
  }
}

std::vector<CutProgram::State> CutProgram::states_of(size_t block) const {
  std::vector<State> states;
  for (const std::string& name : parts_.states_of(block)) {
    const auto found = states_.find(name);
    if (found != states_.end()) states.push_back(found->second);
  }
  return states;
}

// Merges the first blocks that have to be, in the same order in every process. Returns whether
// there were any.
bool CutProgram::merge_sharing_blocks() {
  struct Readers {
    State state;
    std::vector<size_t> blocks;
  };
  std::vector<Readers> all;  // In the order of their first blocks.
  for (size_t block = 0; block < parts_.size(); ++block) {
    for (const State& state : states_of(block)) {
      auto found = std::find_if(all.begin(), all.end(), [&](const Readers& one) {
        return one.state.tensor == state.tensor;
      });
      if (found == all.end()) found = all.insert(all.end(), {.state = state, .blocks = {}});
      if (found->blocks.empty() || found->blocks.back() != block) found->blocks.push_back(block);
    }
  }
  const std::vector<size_t> ends = {0, parts_.size() - 1};
  for (const auto& [state, blocks] : all) {
    if (blocks.size() < 2 || (blocks == ends && state.is_parameter)) continue;
    parts_.merge(blocks.front(), blocks.back() + 1);
    return true;
  }
  return false;
}

BlockSequence CutProgram::sequence(const NamedTensors& parameters,
                                   const NamedTensors& buffers) const {
  if (parts_.size() < 2) return {};
  std::unordered_map<const at::TensorImpl*, size_t> first, last;
  for (size_t block = 0; block < parts_.size(); ++block) {
    for (const auto& [tensor, is_parameter] : states_of(block)) {
      first.emplace(tensor, block);
      last[tensor] = block;
    }
  }
  BlockSequence sequence{.tensors = std::vector<std::vector<std::string>>(parts_.size())};
  for (const NamedTensors* const list : {&parameters, &buffers}) {
    for (const auto& [name, tensor] : *list) {
      const auto found = first.find(tensor.unsafeGetTensorImpl());
      const size_t block = found == first.end() ? 0 : found->second;
      sequence.tensors[block].push_back(name);
      if (found != first.end() && last.at(found->first) != block) sequence.tied.push_back(name);
    }
  }
  return sequence;
}

Output CutProgram::run(const NamedTensors& batch, const std::vector<at::Tensor>& passed,
                       size_t begin, size_t end) {
  auto found = prepared_.find({begin, end});
  if (found == prepared_.end()) {
    Interpreter::Part part{.nodes = parts_.nodes_of(begin, end), .given = parts_.inputs_of(begin)};
    if (end < parts_.size()) {
      part.results = parts_.inputs_of(end);
    } else {
      part.outputs = program_.outputs_read();
    }
    found = prepared_.emplace(std::pair(begin, end), std::move(part)).first;
  }
  return program_.run_part(batch, found->second, passed);
}

}  // namespace gallop::model::exported
