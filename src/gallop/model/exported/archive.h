#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/exported/schema.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/zip_archive.h"

namespace gallop::model::exported {

/// A parameter, buffer or constant of an archive.
struct ArchivedTensor {
  /// In alphabetical order; several for tied weights, which have the same memory and layout.
  std::vector<std::string> names;
  /// On the CPU, in memory of its own: with the strides of the file if they are dense
  /// (channels_last, transposed), otherwise contiguous.
  at::Tensor tensor;
  bool is_parameter = false;
  bool requires_grad = false;
};

/// Adds the tensors by each of their names; parameters require gradients as in the archive.
void add_by_name(const std::vector<ArchivedTensor>& stored,
                 std::map<std::string, at::Tensor>& tensors);

/// An archive of torch.export.save() or package_pt2() (.pt2) of torch 2.9 or newer: programs with
/// their weights. Nothing in it is unpickled or executed. Not thread-safe.
class Archive {
 public:
  /// Throws DataError for other files: it names the version of torch for older archives, and what
  /// the file is for those of torch.save(), TorchScript and AOTInductor.
  explicit Archive(const fs::path& path);

  const fs::path& path() const { return zip_.path(); }

  /// Names of the programs: "model", or the keys given to package_pt2(), such as "eval" and
  /// "train", in alphabetical order.
  const std::vector<std::string>& models() const { return models_; }

  /// The names of the two programs of a model that was exported in both modes.
  static constexpr const char* kTrain = "train";
  static constexpr const char* kEval = "eval";
  /// The name of the program for training: the only one, or kTrain. Throws UsageError for others.
  const std::string& training_program() const;

  /// Throws UsageError if there is no such program, DataError as parse_program() does.
  Program program(const std::string& model);

  /// Parameters and persistent buffers, ordered by their first name. Tensors of which the archive
  /// has only the sizes are taken from `given` by name; in a definition() all are zeros. Throws
  /// DataError for those that are in neither, for damaged, pickled or sparse ones, and for those
  /// that do not lie within their storage.
  std::vector<ArchivedTensor> weights(const std::string& model, const NamedTensors& given = {});

  /// The same for constants and non-persistent buffers.
  std::vector<ArchivedTensor> constants(const std::string& model);

  /// The tensors that a program has as constants, by name: of models with several programs, each
  /// has its own, and names such as lifted_tensor_0 may be those of different ones.
  std::map<std::string, at::Tensor> constants_of(const std::string& model, const Program& program);

  /// The sample inputs as torch.save() writes them; empty if there are none.
  std::string_view sample_inputs(const std::string& model);
  /// A text that the user added as extra/NAME; empty if there is none.
  std::string_view extra(const std::string& name);

  /// The bytes of this archive without the data of weights and sample inputs.
  std::string definition();
  bool is_definition() const { return is_definition_; }
  /// Checksum of the names, sizes and CRC-32s of all entries; of a definition, that of the archive
  /// which it was made from.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::string_view text(const std::string& name);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_foreign() const;
  void check_format();
  void check_layout();
  void find_models();
  void find_fingerprint();
  void check_model(const std::string& model) const;
  std::string place_of(const std::string& model) const;

  ZipArchive zip_;
  std::string folder_;  ///< Ends with '/'.
  std::vector<std::string> models_;
  std::string fingerprint_;
  bool is_definition_ = false;
};

}  // namespace gallop::model::exported
