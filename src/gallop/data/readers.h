#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/dataset.h"

namespace gallop::data {

/// Fashion-MNIST (Xiao et al., 2017): 28 x 28 gray images of clothes in four IDX files, gzip or
/// plain.
struct FashionMnistConfig {};

/// MNIST (LeCun et al., 1998): 28 x 28 gray digits in files of the same format.
struct MnistConfig {};

/// CIFAR-10 (Krizhevsky, 2009) in its binary version: data_batch_1..5.bin and test_batch.bin.
struct Cifar10Config {};

/// CIFAR-100 in its binary version: train.bin and test.bin.
struct Cifar100Config {
  std::string labels = "fine";
};

/// A folder of class folders with image files: PATH/train/CLASS/NAME.jpg, optionally with
/// validation and test folders, or PATH/CLASS/NAME.jpg.
struct FolderConfig {};

/// WebDataset shards, read in place: a file, a folder of .tar files or a pattern with braces.
struct TarConfig {
  std::vector<std::string> classes;
};

/// Text as a sequence of characters or bytes: one file, or a folder with train.txt and optionally
/// val.txt and test.txt.
struct TextConfig {
  std::string unit = "characters";
};

/// Random images of random classes, as torchvision's FakeData: to measure speed without a data set.
struct FakeImagesConfig {
  int64_t samples = 1000;
  std::vector<int64_t> shape = {3, 224, 224};
  int64_t classes = 10;
};

void visit(config::Visitor& visitor, FashionMnistConfig& config);
void visit(config::Visitor& visitor, MnistConfig& config);
void visit(config::Visitor& visitor, Cifar10Config& config);
void visit(config::Visitor& visitor, Cifar100Config& config);
void visit(config::Visitor& visitor, FolderConfig& config);
void visit(config::Visitor& visitor, TarConfig& config);
void visit(config::Visitor& visitor, TextConfig& config);
void visit(config::Visitor& visitor, FakeImagesConfig& config);

/// Each reader finds and checks its files. Throws DataError if they are missing or damaged. Damage
/// within single images of `folder` and `tar` is reported only when they are read.
std::unique_ptr<ImageParts> read_fashion_mnist(const FashionMnistConfig& config,
                                               const ReadContext& context);
std::unique_ptr<ImageParts> read_mnist(const MnistConfig& config, const ReadContext& context);
std::unique_ptr<ImageParts> read_cifar10(const Cifar10Config& config, const ReadContext& context);
std::unique_ptr<ImageParts> read_cifar100(const Cifar100Config& config, const ReadContext& context);
std::unique_ptr<ImageParts> read_folder(const FolderConfig& config, const ReadContext& context);
std::unique_ptr<ImageParts> read_tar(const TarConfig& config, const ReadContext& context);
std::unique_ptr<ImageParts> read_fake_images(const FakeImagesConfig& config,
                                             const ReadContext& context);
std::unique_ptr<TextParts> read_text(const TextConfig& config, const ReadContext& context);

}  // namespace gallop::data
