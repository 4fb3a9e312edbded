# Defines the imported target `lacuna::libtorch`: headers and libraries of LibTorch (torch_cpu and c10, and with LACUNA_CUDA torch_cuda and c10_cuda).
#
# LibTorch's own package file asks for a CUDA toolkit whenever the wheel was built with CUDA, even for programs that use the CPU only. So the
# libraries are named here directly. Looked for in LACUNA_LIBTORCH, then in CMAKE_PREFIX_PATH, with LACUNA_PYTHON in the interpreter's
# packages, then in the project's virtual environment.

set(LACUNA_LIBTORCH "" CACHE PATH "Folder of LibTorch (the one that holds include/ and lib/); empty = search")

set(candidates ${LACUNA_LIBTORCH})
if(NOT LACUNA_LIBTORCH)
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
    list(APPEND candidates ${prefix} ${prefix}/../..) # LibTorch's folder, or its share/cmake
  endforeach()
  if(LACUNA_PYTHON)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_path('purelib'))" OUTPUT_VARIABLE packages OUTPUT_STRIP_TRAILING_WHITESPACE)
    list(APPEND candidates ${packages}/torch)
  endif()
  file(GLOB in_environment ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  list(APPEND candidates ${in_environment})
endif()

foreach(candidate IN LISTS candidates)
  if(EXISTS ${candidate}/lib/libtorch_cpu.so AND EXISTS ${candidate}/include/ATen/ATen.h)
    get_filename_component(LIBTORCH_DIR ${candidate} REALPATH)
    break()
  endif()
endforeach()
if(NOT LIBTORCH_DIR)
  message(FATAL_ERROR "LibTorch was not found (looked in: ${candidates}). Run scripts/setup.sh, or pass -DLACUNA_LIBTORCH=DIR with DIR/lib/libtorch_cpu.so inside.")
endif()

foreach(header headeronly/version.h csrc/api/include/torch/version.h) # where 2.9 and later keep it, then the earlier ones
  if(EXISTS ${LIBTORCH_DIR}/include/torch/${header})
    set(version_header ${LIBTORCH_DIR}/include/torch/${header})
    break()
  endif()
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${version_header}) # another LibTorch is looked at anew
file(STRINGS ${version_header} version_lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9;]" "" version_numbers "${version_lines}")
list(JOIN version_numbers "." LIBTORCH_VERSION)
if(NOT LIBTORCH_VERSION OR LIBTORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "LibTorch in ${LIBTORCH_DIR} is version '${LIBTORCH_VERSION}'; 2.11 or later is needed.")
endif()
message(STATUS "LibTorch ${LIBTORCH_VERSION}: ${LIBTORCH_DIR}")
include(${CMAKE_CURRENT_LIST_DIR}/Cuda.cmake)

add_library(lacuna::libtorch INTERFACE IMPORTED)
target_include_directories(lacuna::libtorch INTERFACE ${LIBTORCH_DIR}/include ${LIBTORCH_DIR}/include/torch/csrc/api/include)
target_link_directories(lacuna::libtorch INTERFACE ${LIBTORCH_DIR}/lib)
target_link_options(lacuna::libtorch INTERFACE LINKER:--as-needed LINKER:-rpath-link,${LIBTORCH_DIR}/lib LINKER:--allow-shlib-undefined)
target_link_libraries(lacuna::libtorch INTERFACE torch_cpu c10)
if(LACUNA_CUDA)
  target_link_libraries(lacuna::libtorch INTERFACE -Wl,--no-as-needed torch_cuda c10_cuda -Wl,--as-needed)
endif()
