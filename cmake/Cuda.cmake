# Settles LACUNA_CUDA (AUTO = ON where nvcc and a LibTorch with CUDA are) and how kernels are compiled.
#
# Kernels know nothing of LibTorch, so nvcc alone compiles them: `cmake --build ... --target lacuna_cuda_kernels` does so on machines whose
# LibTorch is for the CPU only.

find_program(LACUNA_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
set(LACUNA_NVCC_FLAGS -std=c++20 -O3 -DNDEBUG --expt-relaxed-constexpr --Werror all-warnings -Xcompiler=-fPIC -I${PROJECT_SOURCE_DIR}/src
    -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=compute_80 -gencode=arch=compute_90a,code=sm_90a)

if(LACUNA_CUDA STREQUAL "AUTO")
  if(LACUNA_NVCC AND EXISTS ${LIBTORCH_DIR}/lib/libtorch_cuda.so)
    set(LACUNA_CUDA ON)
  else()
    set(LACUNA_CUDA OFF)
  endif()
endif()
if(LACUNA_CUDA)
  if(NOT LACUNA_NVCC)
    message(FATAL_ERROR "LACUNA_CUDA needs nvcc of the CUDA toolkit, 12.4 or later; it is neither in PATH nor in /usr/local/cuda/bin. Pass -DLACUNA_NVCC=FILE.")
  endif()
  if(NOT EXISTS ${LIBTORCH_DIR}/lib/libtorch_cuda.so)
    message(FATAL_ERROR "LACUNA_CUDA needs a LibTorch with CUDA; ${LIBTORCH_DIR} has no libtorch_cuda.so. Run scripts/setup.sh --cuda.")
  endif()
  find_package(CUDAToolkit REQUIRED)
endif()
message(STATUS "CUDA: ${LACUNA_CUDA}")

if(LACUNA_NVCC)
  add_custom_target(lacuna_cuda_kernels)
else()
  add_custom_target(lacuna_cuda_kernels COMMAND ${CMAKE_COMMAND} -E echo "No nvcc here: the CUDA kernels were not compiled.")
endif()

# nvcc_object(FILE OBJECT): OBJECT is made from FILE.
function(nvcc_object file object)
  get_filename_component(folder ${object} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${LACUNA_NVCC} ${LACUNA_NVCC_FLAGS} -MD -MF ${object}.d -MT ${object} -c ${file} -o ${object}
    DEPENDS ${file}
    DEPFILE ${object}.d
    COMMENT "nvcc ${object}"
    VERBATIM)
  set_source_files_properties(${object} PROPERTIES GENERATED TRUE EXTERNAL_OBJECT TRUE)
endfunction()
