#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

namespace gallop::model::exported {

struct Graph;

/// A tensor of the graph, by its name.
struct TensorName {
  std::string name;
  bool operator==(const TensorName&) const = default;
};

/// An integer, floating-point number or boolean that the graph computes (SymInt, ...), by its name.
struct ScalarName {
  std::string name;
  bool operator==(const ScalarName&) const = default;
};

/// The device of the machine that exported the program.
struct DeviceName {
  std::string type;  ///< "cpu", "cuda", ...
  std::optional<int64_t> index{};
  bool operator==(const DeviceName&) const = default;
};

/// A function that a region runs: a graph whose inputs are the region's other arguments.
struct Subgraph {
  std::string name;
  std::shared_ptr<const Graph> graph;
  bool operator==(const Subgraph&) const = default;
};

/// A list of constants and of scalars of the graph, with at least one of the latter.
template <typename T>
using Scalars = std::vector<std::variant<T, ScalarName>>;

using OptionalTensors = std::vector<std::optional<TensorName>>;

/// An argument or result of a node, as the file states it: an integer may stand for a
/// floating-point number or a tensor, and a list of tensors for one of optional tensors. None is
/// std::monostate.
using Argument =
    std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string,
                 c10::ScalarType, c10::MemoryFormat, c10::Layout, DeviceName, TensorName,
                 ScalarName, std::vector<bool>, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, std::vector<std::vector<int64_t>>,
                 std::vector<std::vector<double>>, std::vector<TensorName>, OptionalTensors,
                 std::vector<std::vector<TensorName>>, Scalars<int64_t>, Scalars<double>,
                 Scalars<bool>, Subgraph>;

/// Calls `visit` for every tensor and every scalar of the graph that an argument names, in order.
/// The values inside of a subgraph are not visited.
void visit_names(const Argument& argument,
                 const std::function<void(const TensorName&)>& visit_tensor,
                 const std::function<void(const ScalarName&)>& visit_scalar);

}  // namespace gallop::model::exported
