#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/ivalue.h>

#include "gallop/model/exported/interpreter.h"
#include "gallop/model/exported/operand.h"

// The higher-order operators of exported programs: cond(pred, true_graph, false_graph, operands),
// wrap_with_set_grad_enabled(enabled, graph, operands...) and wrap_with_autocast(device_type,
// dtype, enabled, cache_enabled, graph, operands...).
namespace gallop::model::exported {

/// Their names.
const std::vector<std::string_view>& region_names();

/// What is wrong with the arguments of such an operator; empty if nothing is.
std::string check_region(const std::string& name, const std::vector<Operand>& arguments,
                         const std::vector<std::unique_ptr<Interpreter>>& subgraphs);

/// Runs it with its arguments other than the subgraphs. Grad mode and autocast are restored at the
/// end, also by an exception.
std::vector<c10::IValue> run_region(const std::string& name, std::vector<c10::IValue> arguments,
                                    const std::vector<std::unique_ptr<Interpreter>>& subgraphs);

}  // namespace gallop::model::exported
